"""What the records of a journal say together: the messages for the model, and where the last calls stand.

The same `JournalState` takes up records read from the archive and records just written, so that a process that goes on and one
that begins anew know the same. The work of taking up a record does not grow with the number of records before it. Records
of programs with a loop of their own come in any order: a result is put behind its call, however late it comes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from everturn.errors import Conflict, UsageError
from everturn.llm.protocol import ChatMessage, ChatPart, ToolSpec
from everturn.llm.protocol import ReplyTokens as Tokens
from everturn.loop import records
from everturn.loop.context import Sizes
from everturn.loop.records import INJECTED, DecisionRecord, IntendedCall, Record, RequestRecord, ResultRecord

#: How a call stands. Done: it has its result. In doubt: it was begun, and nobody knows what became of it.
DONE, IN_DOUBT, NOT_STARTED = "done", "in doubt", "not started"


@dataclass
class CallProgress:
    """One call of the last response, as far as the journal knows."""

    part: ChatPart
    of: int  # number of the response
    intents: list[IntendedCall] = field(default_factory=list)
    result: ResultRecord | None = None
    waits: str = ""  # for a human, because of: approval | in_doubt
    decision: DecisionRecord | None = None  # of a human, not yet acted upon
    foreign: bool = False  # of a program that writes no intents down: it may have been begun

    @property
    def state(self) -> str:
        """done | in doubt | not started."""
        return DONE if self.result is not None else IN_DOUBT if self.intents or self.foreign else NOT_STARTED


@dataclass
class JournalState:
    """Everything that was, in the form it is needed in."""

    session: str
    messages: list[ChatMessage] = field(default_factory=list)
    calls: dict[str, CallProgress] = field(default_factory=dict)  # of the last response, by call id, in its order
    response: int = -1  # number of the last response
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    workspace: str = ""
    token: int = 0
    count: int = 0  # records
    requests: int = 0
    usage: Tokens = field(default_factory=Tokens)
    states: dict[str, Any] = field(default_factory=dict)
    orphans: dict[tuple[int, str], CallProgress] = field(default_factory=dict)  # of earlier responses, without a result
    sent: RequestRecord | None = None  # what the last response answers
    sizes: Sizes = field(default_factory=Sizes, repr=False, compare=False)
    _open: int = 0  # calls of the last response without a result
    _answers: dict[int, ChatMessage] = field(default_factory=dict)  # the last one, and those with orphans
    _injected: dict[int, dict[str, ChatMessage]] = field(default_factory=dict)  # by place and number

    @property
    def history(self) -> list[ChatMessage]:
        """The messages for the model: what was said, and what programs put in between, each at its place."""
        if not self._injected:
            return self.messages
        made: list[ChatMessage] = []
        for place, message in enumerate(self.messages):
            made += [*self._injected.get(place, {}).values(), message]
        return made + list(self._injected.get(len(self.messages), {}).values())

    @property
    def open_calls(self) -> list[CallProgress]:
        """The calls of the last response that have no result yet."""
        return [call for call in self.calls.values() if call.result is None] if self._open else []

    @property
    def awaits_model(self) -> bool:
        """Is it the model's turn?"""
        return not self._open and bool(self.messages) and self.messages[-1].role != "assistant"

    def check(self, record: Record, staged: set[tuple[int, str]]) -> None:
        """Raise what is wrong with writing this record now; `staged` are results written together with it."""
        if isinstance(record, records.UserRecord | records.ResponseRecord) and self._open > sum(
            of == self.response for of, _ in staged
        ):
            raise UsageError(f"session {self.session} has calls without a result; resume it before it goes on")
        if isinstance(record, ResultRecord):
            call = self._require_call(record.of, record.call_id)
            if call.result is not None or (record.of, record.call_id) in staged:
                raise Conflict(f"the result of call {record.call_id} in session {self.session}")
            staged.add((record.of, record.call_id))
        elif isinstance(record, DecisionRecord):
            self._check_decision(record)
        elif isinstance(record, records.IntentRecord) and record.of == self.response:
            for intended in record.calls:
                if self._require_call(record.of, intended.call_id).result is not None:
                    raise Conflict(f"the result of call {intended.call_id} in session {self.session}")

    def injection(self, text: str, why: str) -> records.StateRecord:
        """The record that puts words in behind what was said so far."""
        place = len(self.messages)
        number = len(self._injected.get(place, ()))
        return records.StateRecord(kind=f"{INJECTED}{place}/{number}", data={"why": why, "text": text})

    def take(self, record: Record) -> None:
        """Take up the next record. One about a response that was forgotten says nothing."""
        self.count += 1
        handler = _TAKE.get(type(record))
        if handler is not None:
            handler(self, record)

    # one for each type ------------------------------------------------------------------------------------------------
    def _session(self, record: records.SessionRecord) -> None:
        self.model, self.workspace, self.token = record.model, record.workspace, record.token

    def _lease(self, record: records.LeaseRecord) -> None:
        self.token = record.token

    def _setup(self, record: records.SetupRecord) -> None:
        self.system, self.tools = record.system, record.tools

    def _user(self, record: records.UserRecord) -> None:
        self.messages.append(ChatMessage("user", record.parts))

    def _response(self, record: records.ResponseRecord) -> None:
        reply = record.reply
        self._leave_open_calls()
        self.messages.append(reply.message)
        self._answers[record.n] = reply.message
        self.sent = record.sent
        self.response, self.requests = record.n, self.requests + 1
        used, more = self.usage, reply.usage
        self.usage = Tokens(
            used.input + more.input, used.output + more.output,
            used.cache_read + more.cache_read, used.cache_write + more.cache_write,
        )  # fmt: skip
        self.calls = {part.call_id: CallProgress(part, record.n, foreign=record.foreign) for part in reply.calls}
        self._open = len(self.calls)

    def _intent(self, record: records.IntentRecord) -> None:
        for intended in record.calls:
            if (call := self._find_call(record.of, intended.call_id)) is not None:
                call.intents.append(intended)
                call.decision, call.waits = None, ""  # acted upon: it does not hold for another attempt

    def _result(self, record: ResultRecord) -> None:
        call = self._find_call(record.of, record.call_id)
        if call is None or call.result is not None:
            return
        call.result, call.waits = record, ""
        if record.of != self.response:
            del self.orphans[record.of, record.call_id]
            self._put_results(record.of, [record])
            return
        self._open -= 1
        if not self._open:
            self._put_results(record.of, [one.result for one in self.calls.values() if one.result is not None])

    def _pause(self, record: records.PauseRecord) -> None:
        for call_id in record.calls:
            if (call := self._find_call(record.of, call_id)) is not None:
                call.waits, call.decision = record.why, None

    def _decision(self, record: DecisionRecord) -> None:
        if (call := self._find_call(record.of, record.call_id)) is not None:
            call.decision = record

    def _state(self, record: records.StateRecord) -> None:
        self.states[record.kind] = record.data
        place, slash, number = record.kind.removeprefix(INJECTED).partition("/")
        if record.kind.startswith(INJECTED) and slash and place.isdecimal() and isinstance(record.data, dict):
            words = ChatPart("text", str(record.data.get("text", "")))
            self._injected.setdefault(int(place), {})[number] = ChatMessage("user", (words,))

    # where results stand ----------------------------------------------------------------------------------------------
    def _leave_open_calls(self) -> None:
        """The model speaks again: calls without a result are left behind, and what is known of the others stays."""
        if not self._open:
            self._answers.pop(self.response, None)
            return
        self._put_results(self.response, [one.result for one in self.calls.values() if one.result is not None])
        self.orphans |= {(one.of, one.part.call_id): one for one in self.open_calls}

    def _put_results(self, of: int, results: list[ResultRecord]) -> None:
        """Results behind the response they are for, with those that stand there already."""
        answer, parts = self._answers[of], tuple(map(_result_part, results))
        place = len(self.messages)
        while self.messages[place - 1] is not answer:
            place -= 1
        if place < len(self.messages) and self.messages[place].role == "tool":
            self.messages[place] = ChatMessage("tool", self.messages[place].parts + parts)
        elif parts:
            self.messages.insert(place, ChatMessage("tool", parts))
            if self._injected and next(reversed(self._injected)) >= place:  # nothing stands before results
                self._injected = {at + (at >= place): words for at, words in self._injected.items()}

    # helpers ----------------------------------------------------------------------------------------------------------
    def _find_call(self, of: int, call_id: str) -> CallProgress | None:
        call = self.calls.get(call_id)
        return call if call is not None and call.of == of else self.orphans.get((of, call_id))

    def _require_call(self, of: int, call_id: str) -> CallProgress:
        call = self._find_call(of, call_id)
        if call is None:
            raise UsageError(f"session {self.session} has no open call {call_id!r}; resume shows which there are")
        return call

    def _check_decision(self, record: DecisionRecord) -> None:
        call = self._require_call(record.of, record.call_id)
        if call.result is not None or not call.waits:
            raise UsageError(f"call {record.call_id} of session {self.session} does not wait for anybody")
        if record.verdict not in records.VERDICTS:
            raise UsageError(f"{record.verdict!r} is no decision; say {', '.join(records.VERDICTS)}")


def _result_part(result: ResultRecord) -> ChatPart:
    return ChatPart("result", result.text, result.call_id, result.name, is_error=result.is_error)


_TAKE: dict[type, Any] = {
    records.SessionRecord: JournalState._session,
    records.LeaseRecord: JournalState._lease,
    records.SetupRecord: JournalState._setup,
    records.UserRecord: JournalState._user,
    records.ResponseRecord: JournalState._response,
    records.IntentRecord: JournalState._intent,
    records.ResultRecord: JournalState._result,
    records.PauseRecord: JournalState._pause,
    records.DecisionRecord: JournalState._decision,
    records.StateRecord: JournalState._state,
}
