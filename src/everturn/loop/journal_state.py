"""The state that the records of a journal add up to: the messages for the model, and the progress of the last calls.

With `hold`, only the newest messages stay in memory: older turns are let go at three times that many characters, down to
twice as many. Nothing is lost, since the archive has all of them; `dropped` counts them.

The same `JournalState` takes records from the archive and records just written, so a continuing process and a new one know
the same. The work per record does not grow with the number of records. Records of programs with their own loop come in any
order: a result is put after its call, however late it arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from everturn.capture.file_reader import FileCandidate, FilePiece, ReaderStart, empty_result
from everturn.capture.writer import ArchiveWriter, derive_pending, write_piece
from everturn.clock import Clock
from everturn.errors import Conflict, EverturnError, NothingFound, UsageError
from everturn.llm.protocol import ChatMessage, ChatPart, Reply, ReplyTokens, ToolSpec, sum_usage
from everturn.loop import records
from everturn.loop.context import GrowingView, Sizes
from everturn.loop.records import ASK_AGAIN, INJECTED, DecisionRecord, IntendedCall, Record, RequestRecord, ResultRecord
from everturn.loop.request_prefix import HistoryDigest
from everturn.model.archive import SourceFile, Version
from everturn.sessions.messages import stored_lines
from everturn.sources.contract import SourceCandidate, all_sources
from everturn.store.contract import Store

#: States of a call. Done: it has its result. In doubt: it was begun, and its outcome is unknown.
DONE, IN_DOUBT, NOT_STARTED = "done", "in doubt", "not started"


@dataclass
class CallProgress:
    """One call of the last response, as far as the journal knows."""

    part: ChatPart
    of: int  # number of the response
    intents: list[IntendedCall] = field(default_factory=list)
    result: ResultRecord | None = None
    waits: str = ""  # why it waits for a human: approval | in_doubt
    decision: DecisionRecord | None = None  # of a human, not yet applied
    foreign: bool = False  # of a program that records no intents: it may have been begun
    edited: Any = None  # the arguments that a human gave it instead

    @property
    def arguments(self) -> Any:
        """Return the arguments that it runs with."""
        return self.part.arguments if self.edited is None else self.edited

    @property
    def state(self) -> str:
        """done | in doubt | not started."""
        return DONE if self.result is not None else IN_DOUBT if self.intents or self.foreign else NOT_STARTED


@dataclass
class JournalState:
    """The folded records of a journal."""

    session: str
    hold: int = 0  # characters of messages to hold in memory; 0: all
    dropped: int = 0  # messages before those in `messages`
    messages: list[ChatMessage] = field(default_factory=list)
    calls: dict[str, CallProgress] = field(default_factory=dict)  # of the last response, by call id, in its order
    response: int = -1  # number of the last response
    system: str = ""
    has_setup: bool = False  # whether the system prompt was recorded
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    workspace: str = ""
    token: int = 0
    count: int = 0  # records
    requests: int = 0
    usage: ReplyTokens = field(default_factory=ReplyTokens)
    states: dict[str, Any] = field(default_factory=dict)
    orphans: dict[tuple[int, str], CallProgress] = field(default_factory=dict)  # of earlier responses, without a result
    sent: RequestRecord | None = None  # the request of the last response
    reply: Reply | None = None  # the last response
    call_ids: set[str] = field(default_factory=set, repr=False)  # of all calls so far
    sizes: Sizes = field(default_factory=Sizes, repr=False, compare=False)
    view: GrowingView = field(default_factory=GrowingView, repr=False, compare=False)  # of the last request
    digest: HistoryDigest = field(default_factory=HistoryDigest, repr=False, compare=False)
    _characters: int = 0  # of the messages, at least
    _open: int = 0  # calls of the last response without a result
    _answers: dict[int, ChatMessage] = field(default_factory=dict)  # the last one, and those with orphans
    _asked_again: int = -1  # the place of the newest text that asks for another answer
    _injected: dict[int, dict[str, ChatMessage]] = field(default_factory=dict)  # by place and number

    @property
    def history(self) -> list[ChatMessage]:
        """Return the messages for the model, with the text that programs put in between."""
        if not self._injected:
            return self.messages
        made: list[ChatMessage] = []
        for place, message in enumerate(self.messages, self.dropped):
            made += [*self._injected.get(place, {}).values(), message]
        return made + list(self._injected.get(self.dropped + len(self.messages), {}).values())

    @property
    def open_calls(self) -> list[CallProgress]:
        """Return the calls of the last response without a result."""
        return [call for call in self.calls.values() if call.result is None] if self._open else []

    @property
    def awaits_model(self) -> bool:
        """Whether it is the model's turn: it was asked, or the provider paused its answer."""
        if self._open or not self.messages:
            return False
        is_paused = self.reply is not None and self.reply.stop == "pause"
        return self.messages[-1].role != "assistant" or is_paused or self._asked_again == len(self.messages)

    def check(self, record: Record, staged: set[tuple[int, str]]) -> None:
        """Raise if this record may not be written now. `staged` are results written together with it."""
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
        """Return the record that puts text after the messages so far."""
        place = self.dropped + len(self.messages)
        number = len(self._injected.get(place, ()))
        return records.StateRecord(kind=f"{INJECTED}{place}/{number}", data={"why": why, "text": text})

    def take(self, record: Record) -> None:
        """Apply the next record. One about a forgotten response has no effect."""
        self.count += 1
        if (handler := _TAKE.get(type(record))) is not None:
            handler(self, record)

    # --- one method per record type ---
    def _take_session(self, record: records.SessionRecord) -> None:
        self.model, self.workspace, self.token = record.model, record.workspace, record.token

    def _take_lease(self, record: records.LeaseRecord) -> None:
        self.token = record.token

    def _take_setup(self, record: records.SetupRecord) -> None:
        self.system, self.tools, self.has_setup = record.system, record.tools, True

    def _take_user(self, record: records.UserRecord) -> None:
        self.messages.append(ChatMessage("user", record.parts))
        self._let_go()

    def _take_response(self, record: records.ResponseRecord) -> None:
        reply = record.reply
        self._leave_open_calls()
        self.messages.append(reply.message)
        self._characters += _characters(reply.message) if self.hold else 0
        self._answers[record.n] = reply.message
        self.sent, self.reply = record.sent, reply
        self.response, self.requests = record.n, self.requests + 1
        self.usage = sum_usage([self.usage, reply.usage])
        self.calls = {part.call_id: CallProgress(part, record.n, foreign=record.foreign) for part in reply.calls}
        self.call_ids.update(self.calls)
        self._open = len(self.calls)

    def _take_intent(self, record: records.IntentRecord) -> None:
        for intended in record.calls:
            if (call := self._find_call(record.of, intended.call_id)) is not None:
                call.intents.append(intended)
                call.decision, call.waits = None, ""  # applied: it does not count for another attempt

    def _take_result(self, record: ResultRecord) -> None:
        if (call := self._find_call(record.of, record.call_id)) is None or call.result is not None:
            return
        call.result, call.waits = record, ""
        if record.of != self.response:
            del self.orphans[record.of, record.call_id]
            self._put_results(record.of, [record])
            return
        self._open -= 1
        if not self._open:
            self._put_results(record.of, [one.result for one in self.calls.values() if one.result is not None])

    def _take_pause(self, record: records.PauseRecord) -> None:
        for call_id in record.calls:
            if (call := self._find_call(record.of, call_id)) is not None:
                call.waits, call.decision = record.why, None

    def _take_decision(self, record: DecisionRecord) -> None:
        if (call := self._find_call(record.of, record.call_id)) is not None:
            call.decision = record
            call.edited = record.arguments if record.arguments is not None else call.edited

    def _take_state(self, record: records.StateRecord) -> None:
        self.states[record.kind] = record.data
        place, slash, number = record.kind.removeprefix(INJECTED).partition("/")
        if record.kind.startswith(INJECTED) and slash and place.isdecimal() and isinstance(record.data, dict):
            words = ChatPart("text", str(record.data.get("text", "")))
            self._injected.setdefault(int(place), {})[number] = ChatMessage("user", (words,))
            if record.data.get("why") == ASK_AGAIN:
                self._asked_again = int(place)

    def _let_go(self) -> None:
        """Let go of the oldest turns if there are far more messages than are held."""
        self._characters += _characters(self.messages[-1]) if self.hold else 0
        if not self.hold or self._characters <= 3 * self.hold or self.orphans:
            return
        sizes = list(map(_characters, self.messages))
        left = self._characters = sum(sizes)
        if left <= 3 * self.hold:
            return
        cut = 0
        for place, message in enumerate(self.messages):
            if message.role == "user":
                cut = place
                if left <= 2 * self.hold:
                    break
            left -= sizes[place]
        self.sizes.forget(self.messages[:cut])
        self._characters -= sum(sizes[:cut])
        self.dropped += cut
        del self.messages[:cut]
        gone = [place for place in self._injected if place < self.dropped]
        for place in gone:
            for number, message in self._injected.pop(place).items():
                self.states.pop(f"{INJECTED}{place}/{number}", None)
                self.sizes.forget([message])

    def _leave_open_calls(self) -> None:
        """Abandon calls without a result when the model answers again. Known results stay."""
        if not self._open:
            self._answers.pop(self.response, None)
            return
        self._put_results(self.response, [one.result for one in self.calls.values() if one.result is not None])
        self.orphans |= {(one.of, one.part.call_id): one for one in self.open_calls}

    def _put_results(self, of: int, results: list[ResultRecord]) -> None:
        """Put results after their response, with those already there."""
        answer = self._answers[of]
        self._characters += sum(len(one.text) for one in results) if self.hold else 0
        parts = tuple(ChatPart("result", one.text, one.call_id, one.name, is_error=one.is_error) for one in results)
        place = len(self.messages)
        while place and self.messages[place - 1] is not answer:
            place -= 1
        if not place:  # let go
            return
        if place < len(self.messages) and self.messages[place].role == "tool":
            self.messages[place] = ChatMessage("tool", self.messages[place].parts + parts)
        elif parts:
            self.messages.insert(place, ChatMessage("tool", parts))
            place += self.dropped
            if self._injected and next(reversed(self._injected)) >= place:  # results come first
                self._injected = {at + (at >= place): words for at, words in self._injected.items()}

    def _find_call(self, of: int, call_id: str) -> CallProgress | None:
        call = self.calls.get(call_id)
        return call if call is not None and call.of == of else self.orphans.get((of, call_id))

    def _require_call(self, of: int, call_id: str) -> CallProgress:
        if (call := self._find_call(of, call_id)) is None:
            raise UsageError(f"session {self.session} has no open call {call_id!r}; resume shows which there are")
        return call

    def _check_decision(self, record: DecisionRecord) -> None:
        call = self._require_call(record.of, record.call_id)
        if call.result is not None or not call.waits:
            raise UsageError(f"call {record.call_id} of session {self.session} does not wait for anybody")
        if record.verdict not in records.VERDICTS:
            raise UsageError(f"{record.verdict!r} is no decision; say {', '.join(records.VERDICTS)}")


def _characters(message: ChatMessage) -> int:
    return sum(
        len(part.text) + (len(str(part.arguments)) if part.arguments is not None else 0) for part in message.parts
    )


_TAKE: dict[type, Any] = {
    records.SessionRecord: JournalState._take_session, records.LeaseRecord: JournalState._take_lease,
    records.SetupRecord: JournalState._take_setup, records.UserRecord: JournalState._take_user,
    records.ResponseRecord: JournalState._take_response, records.IntentRecord: JournalState._take_intent,
    records.ResultRecord: JournalState._take_result, records.PauseRecord: JournalState._take_pause,
    records.DecisionRecord: JournalState._take_decision, records.StateRecord: JournalState._take_state,
}  # fmt: skip


# --- The end of a journal in the archive: where it is, its lines, and how lines are added to it ---
AGENT = "journal"

#: Masks the secrets of one line.
Mask = Callable[[bytes], bytes]


@dataclass
class JournalPlace:
    """The location of a journal in the archive; without a file it does not exist yet."""

    file: SourceFile | None = None
    version: Version = field(default_factory=Version)


def journal_path(session: str) -> str:
    """Return the name of a journal among the files of the archive. No file on disk has such a name."""
    return f"{AGENT}:{session}"


def find_journal(store: Store, session: str, machine: str) -> JournalPlace:
    """Find the journal, on whichever machine it was begun."""
    for row in store.sessions_of(AGENT, session):
        file, version = store.file_by_id(store.version(row.version).source)
        if file.path == journal_path(session):
            return JournalPlace(file, version)
    found = store.file(machine, journal_path(session))
    return JournalPlace(*found) if found is not None else JournalPlace()


class JournalEnd:
    """The end of one journal, as one process knows it. Rows of an older parser are made anew when it is opened."""

    def __init__(
        self,
        store: Store,
        session: str,
        place: JournalPlace,
        origin: tuple[str, str],
        clock: Clock,
        mask: Mask | None = None,
    ) -> None:
        self._store, self._session, self._clock, self._source = store, session, clock, all_sources()[AGENT]
        self._mask = mask
        self._candidate = SourceCandidate(Path(journal_path(session)), "main", session)
        file, version = place.file, place.version
        self._writer = ArchiveWriter(store, *((file.machine, file.owner) if file else origin), clock())
        if file is not None:
            derive_pending(self._writer, self._source, file, version)
        candidate = FileCandidate(self._source, self._candidate, file, version if file else None, None)
        self._intake = ReaderStart(candidate, "full", version, reason="" if file else "first")
        in_step = file is None or version.parser == self._source.parser
        self._reader = self._source.reader(self._candidate, version.state) if in_step else None
        self.commits = 0

    @property
    def is_masked(self) -> bool:
        return self._mask is not None

    @property
    def is_new(self) -> bool:
        return bool(self._intake.reason)

    @property
    def has_unread(self) -> bool:
        """Whether there are bytes without rows."""
        return self._intake.version.parsed < self._intake.version.size

    def lines(self) -> Iterator[bytes]:
        """Yield every line from the beginning."""
        return iter(()) if self.is_new else stored_lines(self._store, self._intake.version)

    def append(self, data: bytes) -> None:
        """Add lines, masked in mode `redacted`. Raise Conflict if this is no longer the end."""
        if self._mask is not None:
            data = b"".join(map(self._mask, data.splitlines(keepends=True)))
        self._writer.now = self._clock()
        try:
            with self._store.write():
                write_piece(self._writer, self._read_piece(data))
        except EverturnError:
            raise
        except Exception as failure:  # rows could not be made: a defect of ours must not lose the record
            self._reader = None
            with self._store.write():
                piece = self._read_piece(data)
                why = f"rows could not be made ({type(failure).__name__}) after byte {piece.at}"
                write_piece(self._writer, replace(piece, changes=piece.changes | {"parser": -1}, failed=why))
        self.commits += 1

    def _read_piece(self, data: bytes) -> FilePiece:
        """Read the new lines, with any that were stored while another process derived the rows again."""
        version = self._intake.version
        if version.id:
            self._refresh_version(version)
        reading, state, parser = empty_result(), version.state, version.parser
        if self._reader is not None:
            left = self._store.read_raw(version.id, version.parsed, version.size) if self.has_unread else b""
            reading = self._reader.feed(left + data, version.parsed, True)
            state, parser = self._reader.state(), self._source.parser
        end = version.offset + len(data)
        changes: dict[str, int | bytes] = {
            "offset": end, "size": end, "file_size": end, "parsed": version.parsed + reading.consumed,
            "parser": parser, "state": state,
        }  # fmt: skip
        return FilePiece(self._intake, data, version.size, reading, version.offset, changes, last=True)

    def _refresh_version(self, version: Version) -> None:
        """Pick up rows that another process has derived again (`rebuild`, an upgrade)."""
        try:
            row = self._store.version(version.id)
        except NothingFound as failure:
            raise Conflict(f"session {self._session}") from failure
        moved = (row.parsed, row.parser, row.state) != (version.parsed, version.parser, version.state)
        version.lines, version.glued = row.lines, row.glued
        if moved:
            version.parsed, version.parser, version.state = row.parsed, row.parser, row.state
            in_step = row.parser == self._source.parser
            self._reader = self._source.reader(self._candidate, row.state) if in_step else None
