"""Recording of conversations, message by message.

`evaluate` records into a session after `enable_conversation_recording(session)`: each message as soon as it is complete,
each result as soon as it is known, and each call before it runs. The `ConversationState` is built on demand; there is one
per evaluation, the newest last.

`RecordedJournal` is the journal of the loop in memory, so `evaluate` shares the loop and its policies, and the owner of
the session decides where its snapshots go. `saved` is called after every write, before it takes effect. A turn is closed
by the next one: results of calls that were left open in it are not recorded, only reported again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from everturn.clock import Clock
from everturn.errors import UsageError
from everturn.evaluation.session import EvaluationSession, Slice
from everturn.llm.protocol import Reply
from everturn.loop import records
from everturn.loop.conversation import (
    ConversationMessage,
    ConversationState,
    ConversationTurn,
    JSONValue,
    StartedCall,
    aware_time,
    model_message,
    response_message,
    user_message,
)
from everturn.loop.journal import LAST, Journal
from everturn.loop.journal_state import JournalState
from everturn.loop.leases import TTL_MS
from everturn.loop.records import IntendedCall, Record, RequestRecord
from everturn.loop.tools import Tool
from everturn.model.conversation import prepared


def enable_conversation_recording(session: EvaluationSession) -> None:
    """Record evaluations in this session from now on. A second call changes nothing."""
    recording_of(session)


def recording_of(session: EvaluationSession) -> ConversationRecording:
    """Return the recording of a session, which is enabled with it."""
    with session.lock:
        recording = session.slice(ConversationState)
        if not isinstance(recording, ConversationRecording):
            session.install(recording := ConversationRecording())
        return recording


def settle(session: EvaluationSession, call_id: str, text: str, is_error: bool = False) -> None:
    """State the result of a call of the last turn that is in doubt, so that it need not run again."""
    recording = recording_of(session)
    state = session.query(ConversationState).latest()
    open_calls = state.turns[-1].pending if state is not None and state.turns else ()
    name = next((call.name for call in open_calls if call.call_id == call_id), None)
    if name is None:
        raise UsageError(f"there is no open call {call_id!r} in the last turn")
    with session.lock:
        recording.result(ConversationMessage("tool", text, (), call_id, name, is_error=is_error))


class _GrowingTurn:
    """A turn that may still grow."""

    def __init__(self, begun: ConversationTurn) -> None:
        self._turn = begun
        self.started, self.results = list(begun.started), list(begun.tool_messages)

    def current_turn(self) -> ConversationTurn:
        """Return the turn as it is now."""
        return replace(self._turn, tool_messages=tuple(self.results), started=tuple(self.started))


class ConversationRecording(Slice[ConversationState]):
    """The slice of conversations: earlier ones complete, the last one in parts."""

    def __init__(self) -> None:
        super().__init__(ConversationState)
        self._head: ConversationState | None = None  # without its turns
        self._turns: list[ConversationTurn] = []  # all but the last
        self._last: _GrowingTurn | None = None
        self._unanswered: list[ConversationMessage] = []  # not answered yet
        self._built: ConversationState | None = None
        self.register(ConversationState, lambda items, event: None)

    def items(self) -> tuple[ConversationState, ...]:
        """Return the conversations; the last one is rebuilt if it has grown."""
        return (*self._items, self._state()) if self._head is not None else tuple(self._items)

    def seed(self, items: Iterable[ConversationState]) -> None:
        """Replace the items; the last one continues."""
        states = list(items)
        self._items, self._head, self._built = states[:-1], None, None
        if states:
            self._load_state(states[-1])

    def take(self, event: ConversationState) -> None:
        """Replace the state of its evaluation and continue with it."""
        self.begin(event)

    # --- recording ---
    def begin(self, state: ConversationState) -> None:
        """Continue with this state."""
        self._items = [one for one in self.items() if one.evaluation_id != state.evaluation_id]
        self._load_state(state)

    def user(self, message: ConversationMessage) -> None:
        """Record a message of the user."""
        self._require_begun()
        self._unanswered.append(message)

    def response(self, message: ConversationMessage, payload: Mapping[str, JSONValue] | None = None) -> None:
        """Record a response; a new turn."""
        head = self._require_begun()
        if self._last is not None:
            self._turns.append(self._last.current_turn())
        number, unanswered = len(self._turns) + 1, tuple(self._unanswered)
        self._last = _GrowingTurn(
            ConversationTurn(number, message, (), payload, head.evaluation_id, message.created_at, unanswered)
        )
        self._unanswered = []

    def start_call(self, call: StartedCall) -> None:
        """Record that a call is about to run."""
        self._require_begun()
        self._require_turn().started.append(call)

    def result(self, message: ConversationMessage) -> None:
        """Record the result of a call."""
        self._require_begun()
        self._require_turn().results.append(message)

    def _require_turn(self) -> _GrowingTurn:
        if self._last is None:
            raise UsageError("there is no response yet that could have called a tool")
        return self._last

    def _require_begun(self) -> ConversationState:
        if self._head is None:
            raise UsageError("no conversation has begun")
        self._built = None
        return self._head

    def _load_state(self, state: ConversationState) -> None:
        self._head, self._built = replace(state, turns=(), unanswered=()), state
        self._turns, self._unanswered = list(state.turns[:-1]), list(state.unanswered)
        self._last = _GrowingTurn(state.turns[-1]) if state.turns else None

    def _state(self) -> ConversationState:
        assert self._head is not None
        if self._built is None:
            last = [self._last.current_turn()] if self._last is not None else []
            self._built = replace(self._head, turns=(*self._turns, *last), unanswered=tuple(self._unanswered))
        return self._built


_SENT_KEY = "sent"


class RecordedJournal(Journal):
    """A journal in memory. Responses are numbered like turns, so that a call keeps its idempotency key."""

    def __init__(  # without an archive
        self,
        recording: ConversationRecording,
        state: ConversationState,
        tools: Sequence[Tool],
        clock: Clock,
        saved: Callable[[], None],
    ) -> None:
        self.session, self.clock, self.ttl = state.evaluation_id, clock, TTL_MS
        self.alone = threading.RLock()
        self.past = JournalState(state.evaluation_id, system=state.system_message.content)
        self.past.tools = tuple(tool.spec for tool in tools)
        self._recording, self._saved = recording, saved
        for record in _state_records(state):
            self._take(record)

    def write(self, *many: Record) -> None:
        """Record them, then call `saved`."""
        with self.alone:
            staged: set[tuple[int, str]] = set()
            for record in many:
                self._number(record)
                self.past.check(record, staged)
                self._record(record)
                self._take(record)
            self._saved()

    def renew(self) -> None:
        """Do nothing: there is no lease."""

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _number(self, record: Record) -> None:
        record.at = record.at or self.clock()
        if isinstance(record, records.ResponseRecord):
            record.n = self.past.requests
        elif isinstance(
            record, records.IntentRecord | records.PauseRecord | records.ResultRecord | records.DecisionRecord
        ):
            record.of = self.past.response if record.of == LAST else record.of

    def _take(self, record: Record) -> None:
        self.past.take(record)
        self.past.count = self.past.requests

    def _record(self, record: Record) -> None:
        when, recording = aware_time(record.at), self._recording
        if isinstance(record, records.UserRecord):
            recording.user(user_message(record.parts, when))
        elif isinstance(record, records.ResponseRecord):
            message, payload = response_message(record.reply, when)
            recording.response(message, {**payload, **_sent_payload(record)})
        elif isinstance(record, records.IntentRecord):
            for call in record.calls:
                recording.start_call(StartedCall(call.call_id, call.attempt, call.purpose))
        elif isinstance(record, records.ResultRecord) and record.of == self.past.response:
            name = self.past.calls[record.call_id].part.name
            recording.result(
                ConversationMessage(
                    "tool", record.text, (), record.call_id, name, created_at=when, is_error=record.is_error
                )
            )


def _state_records(state: ConversationState) -> Iterator[Record]:
    """Yield the records that a journal of this conversation would hold."""
    for number, turn in enumerate(state.turns):
        for message in turn.user_messages:
            yield records.UserRecord(parts=model_message(message).parts)
        yield records.ResponseRecord(
            n=number, reply=Reply(model_message(turn.assistant_message), _read_stop(turn)), sent=_read_sent(turn)
        )
        yield from _call_records(number, turn)
    for message in state.unanswered:
        yield records.UserRecord(parts=model_message(message).parts)


def _sent_payload(record: records.ResponseRecord) -> dict[str, Any]:
    return {_SENT_KEY: msgspec.to_builtins(record.sent)} if record.sent is not None else {}


def _read_stop(turn: ConversationTurn) -> str:
    stop = (turn.provider_payload or {}).get("stop")
    return stop if isinstance(stop, str) and stop else "end"


def _read_sent(turn: ConversationTurn) -> RequestRecord | None:
    """Return the request of a response. A state from elsewhere may hold anything there."""
    try:
        sent = (turn.provider_payload or {}).get(_SENT_KEY)
        return None if sent is None else msgspec.convert(sent, prepared(RequestRecord))
    except msgspec.ValidationError:
        return None


def _call_records(number: int, turn: ConversationTurn) -> Iterator[Record]:
    names = {call.call_id: call.name for call in turn.assistant_message.tool_calls}
    for call in turn.started:
        intended = IntendedCall(call.call_id, names.get(call.call_id, ""), call.attempt, call.purpose)
        yield records.IntentRecord(of=number, calls=(intended,))
    for message in turn.tool_messages:
        yield records.ResultRecord(
            of=number, call_id=message.tool_call_id or "", name=message.name or "", text=message.content,
            is_error=message.is_error,
        )  # fmt: skip
