"""The journal of a running conversation, written record by record into the archive.

When a method returns, what it wrote is durable; when it raises, the journal is closed for good and must be opened anew.
How durable is decided by the connection (`open_archive`):

    power      every commit is synced (SQLite `synchronous=FULL`): survives the process, the system and the power
    process    commits are handed to the system (`NORMAL`): survives `kill -9`, but the last ones may go with the power

Each record is one line at the end of the raw layer of `journal:SESSION`; its rows, its index text and the cursor are
written in the same transaction, so that what was said can be found, exported, verified, forgotten and derived again like
any other session. What several threads write at the same time shares a transaction. A failed sync is never tried again.

What several threads hand in at the same time is written together.

Whoever comes first writes; what arrives meanwhile waits and goes with the next one, all of it in one transaction and one
sync. Nobody returns before what they handed in is written, and nothing is ever written by two threads at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from everturn.capture.file_reader import FilePiece, ReaderStart, empty_result
from everturn.capture.scan import FileCandidate
from everturn.capture.writer import ArchiveWriter, derive_pending, write_piece
from everturn.clock import Clock, new_id, now
from everturn.errors import Busy, Conflict, EverturnError, NothingFound, UnknownSession, UsageError
from everturn.llm.protocol import ChatPart, Reply, ToolSpec
from everturn.loop import leases, records
from everturn.loop.journal_state import JournalState
from everturn.loop.leases import TTL_MS, LeaseHolder
from everturn.loop.records import (
    DecisionRecord,
    IntendedCall,
    IntentRecord,
    PauseRecord,
    Record,
    RequestRecord,
    ResultRecord,
)
from everturn.model.archive import SourceFile, Version
from everturn.sources.contract import SourceCandidate, all_sources
from everturn.store.contract import Store, open_store

T = TypeVar("T")

#: Writes several things as one; says for each why it was refused, or None. Raises when nothing was written.
Commit = Callable[[Sequence[T]], Sequence[Exception | None]]


class _Ticket(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item
        self.done = False
        self.failure: BaseException | None = None


class GroupCommit(Generic[T]):
    """Merges what waits."""

    def __init__(self, commit: Commit[T]) -> None:
        self._commit = commit
        self._arrivals = threading.Lock()
        self.turn = threading.RLock()  # held while writing; whoever else uses the same connection takes it too
        self._waiting: list[_Ticket[T]] = []

    def submit(self, item: T) -> None:
        """Return when `item` is written; raise when it is not."""
        ticket = _Ticket(item)
        with self._arrivals:
            self._waiting.append(ticket)
        with self.turn:
            if not ticket.done:
                self._write()
        if ticket.failure is not None:
            raise ticket.failure

    def _write(self) -> None:
        with self._arrivals:
            batch, self._waiting = self._waiting, []
        try:
            for ticket, refusal in zip(batch, self._commit([one.item for one in batch]), strict=True):
                ticket.failure = refusal
        except BaseException as failure:
            for ticket in batch:
                ticket.failure = failure
        for ticket in batch:
            ticket.done = True


AGENT = "journal"
DURABILITIES = ("power", "process")

#: Stands for the number of the response written just before, in the same call or as the last one.
LAST = -1

_TRIES = 5


@dataclass(frozen=True)
class JournalAbout:
    """What a new session is about. Of an existing one only `machine` is looked at: who takes it up."""

    machine: str = ""
    owner: str = ""
    workspace: str = ""
    model: str = ""
    client: str = "everturn"
    title: str = ""
    parent: str = ""
    relation: str = ""  # to the parent: continues | forked_from
    also: tuple[str, ...] = ()  # further sessions it goes on from


def open_archive(url: str, durability: str = "power") -> Store:
    """A connection for a journal; see above for what survives what."""
    if durability not in DURABILITIES:
        raise UsageError(f"durability {durability!r} is not offered; say {' or '.join(DURABILITIES)}")
    return open_store(url, durable=durability == "power")


class Journal:
    """One session, open for writing. Made by `Journal.open`. May be used from several threads.

    The store belongs to the journal while it is open: use it elsewhere only inside `with journal.alone:`.
    """

    def __init__(
        self, store: Store, past: JournalState, place: JournalPlace, about: JournalAbout, clock: Clock, ttl: int
    ) -> None:
        self.store, self.past, self.clock, self.ttl = store, past, clock, ttl
        self.session = past.session
        self._end = JournalEnd(store, self.session, place, (about.machine, about.owner), clock)
        self._group: GroupCommit[Sequence[Record]] = GroupCommit(self._commit)
        self.alone = self._group.turn
        self._renew_at = 0
        self._closed, self._released = "", False

    @property
    def commits(self) -> int:
        """Transactions written so far."""
        return self._end.commits

    # life -------------------------------------------------------------------------------------------------------------
    @classmethod
    def open(
        cls,
        store: Store,
        session: str = "",
        about: JournalAbout = JournalAbout(),  # noqa: B008 -- frozen
        holder: LeaseHolder | None = None,
        clock: Clock = now,
        ttl: int = TTL_MS,
        force: bool = False,
    ) -> Journal:
        """Take a session up, or begin one when none is named or there is none of that name.

        Raises Busy when another process runs it; `force` takes it away from that one, whose next write then fails.
        """
        session = session or new_id()
        if any((row.kind, row.agent, row.key) == ("session", AGENT, session) for row in store.tombstones()):
            raise UnknownSession(session)
        holder = holder or leases.this_process(about.machine)
        for _ in range(_TRIES):
            journal = cls._look(store, session, about, clock, ttl)
            try:
                journal._take_lease(about, holder, force)
                return journal
            except Conflict:
                continue  # somebody wrote between the look and the lease
        raise Busy(f"session {session}")

    @staticmethod
    def exists(store: Store, session: str) -> bool:
        """Is there a journal of that name?"""
        return find_journal(store, session, "").file is not None

    @classmethod
    def _look(cls, store: Store, session: str, about: JournalAbout, clock: Clock, ttl: int) -> Journal:
        journal = cls(store, JournalState(session), find_journal(store, session, about.machine), about, clock, ttl)
        lines = journal._end.whole().splitlines()
        for raw in lines:
            if raw.strip():  # blank where something was forgotten
                journal.past.take(records.parse_record(raw, session))
        journal.past.count = len(lines)
        return journal

    def _take_lease(self, about: JournalAbout, holder: LeaseHolder, force: bool) -> None:
        with self.alone:
            at = self.clock()
            with self.store.write():
                if self._end.is_new and self.exists(self.store, self.session):
                    raise Conflict(
                        f"session {self.session}"
                    )  # another machine, whose file has another place, was first
                token = leases.take_lease(self.store, self.session, holder, at, at + self.ttl, force)
                record: Record = records.LeaseRecord(token=token, holder=str(holder))
                if self._end.is_new:
                    record = records.SessionRecord(
                        journal=records.FORMAT, id=self.session, workspace=about.workspace, model=about.model, client=about.client,
                        title=about.title, parent=about.parent, relation=about.relation, also=about.also, token=token,
                        holder=str(holder),
                    )  # fmt: skip
                self._commit([[record]])
            self._renew_at = at + self.ttl // 3

    def renew(self) -> None:
        """Say that we are still here, if it is time to. Raises Conflict when the session was taken from us."""
        at = self.clock()
        if at < self._renew_at:
            return
        with self.alone, self._break_on_failure(), self.store.write():
            leases.renew_lease(self.store, self.session, self.past.token, at, at + self.ttl)
        self._renew_at = at + self.ttl // 3

    def close(self) -> None:
        """Let others have the session. The store stays open. A second time does nothing."""
        with self.alone:
            if self._released:
                return
            if not self._closed and self._end.has_unread:
                with suppress(EverturnError), self._break_on_failure():
                    self._end.append(b"")
            self._closed, self._released = self._closed or "it was closed", True
            # Where it is not ours any more, or cannot be written, it runs out by itself.
            with suppress(EverturnError), self.store.write():
                leases.renew_lease(self.store, self.session, self.past.token, self.clock(), 0)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    # records ----------------------------------------------------------------------------------------------------------
    def write(self, *many: Record) -> None:
        """Write records together. All others go through this."""
        self._group.submit(many)

    def setup(self, system: str, tools: Sequence[ToolSpec] = ()) -> None:
        """The system prompt and the tools from here on; nothing is written when they are the same as before."""
        if (system, tuple(tools)) != (self.past.system, self.past.tools):
            self.write(records.SetupRecord(system=system, tools=tuple(tools)))

    def accept(self, prompt: str | Sequence[ChatPart]) -> None:
        """A message of the human. Raises Usage while calls of the last response have no result."""
        parts = (ChatPart("text", prompt),) if isinstance(prompt, str) else tuple(prompt)
        self.write(records.UserRecord(parts=parts))

    def response(
        self,
        reply: Reply,
        intend: Sequence[IntendedCall] = (),
        wait: Sequence[str] = (),
        sent: RequestRecord | None = None,
    ) -> None:
        """A response of the model, with the calls that are begun at once and those that wait for approval."""
        strange = {one.call_id for one in intend}.union(wait) - {part.call_id for part in reply.calls}
        if strange:
            raise UsageError(f"the response has no call {', '.join(sorted(strange))}")
        more: list[Record] = [IntentRecord(of=LAST, calls=tuple(intend))] if intend else []
        if wait:
            more.append(PauseRecord(of=LAST, why="approval", calls=tuple(wait)))
        self.write(records.ResponseRecord(reply=reply, sent=sent), *more)

    def intend(self, calls: Sequence[IntendedCall]) -> None:
        """These calls of the last response are about to run."""
        self.write(IntentRecord(of=LAST, calls=tuple(calls)))

    def result(
        self, call_id: str, text: str, is_error: bool = False, outcome: str = "ok", ms: int | None = None
    ) -> None:
        """What a call of the last response gave. Raises Conflict when it has a result already."""
        self.write(ResultRecord(of=LAST, call_id=call_id, text=text, is_error=is_error, outcome=outcome, ms=ms))

    def approve(self, call_id: str, by: str = "") -> None:
        """Let a call that waits run; one in doubt, run again."""
        self.write(DecisionRecord(of=LAST, call_id=call_id, verdict="approve", by=by))

    def deny(self, call_id: str, text: str = "", by: str = "") -> None:
        """A call that waits is not to run; one in doubt, not again."""
        self.write(DecisionRecord(of=LAST, call_id=call_id, verdict="deny", text=text, by=by))

    def settle(self, call_id: str, text: str, by: str = "") -> None:
        """Say what became of a call in doubt, so that it need not run again."""
        self.write(DecisionRecord(of=LAST, call_id=call_id, verdict="settle", text=text, by=by))

    def inject(self, text: str, why: str) -> None:
        """Words that a program puts into the conversation here. The model gets them; nobody is said to have typed them."""
        self.write(self.past.injection(text, why))

    def note(self, text: str, kind: str = "", data: Any = None) -> None:
        """Something to be kept beside the conversation."""
        self.write(records.NoteRecord(kind=kind, text=text, data=data))

    def state(self, kind: str, data: Any) -> None:
        """The state of a program that runs on this journal; `past.states` has the last of each kind."""
        self.write(records.StateRecord(kind=kind, data=data))

    # writing ----------------------------------------------------------------------------------------------------------
    def _commit(self, batch: Sequence[Sequence[Record]]) -> list[Exception | None]:
        """Write what several threads handed in. What cannot be written in this order is refused, the rest is written."""
        self._check_open()
        refused: list[Exception | None] = []
        taken: list[Record] = []
        staged: set[tuple[int, str]] = set()
        for item in batch:
            try:
                numbered = self._number_records(item, len(taken))
                for record in numbered:
                    self.past.check(record, staged)
            except EverturnError as refusal:
                refused.append(refusal)
            else:
                refused.append(None)
                taken += numbered
        if taken:
            with self._break_on_failure():
                self._end.append(b"".join(map(records.record_line, taken)))
            for record in taken:
                self.past.take(record)
        return refused

    def _number_records(self, item: Sequence[Record], before: int) -> list[Record]:
        response, at = self.past.response, self.clock()
        for n, record in enumerate(item, self.past.count + before):
            record.n, record.at = n, record.at or at
            if isinstance(record, records.ResponseRecord):
                response = n
            elif isinstance(record, IntentRecord | PauseRecord | ResultRecord | DecisionRecord) and record.of == LAST:
                record.of = response
        return list(item)

    def _check_open(self) -> None:
        if self._closed:
            raise EverturnError(
                f"the journal of session {self.session} cannot be written: {self._closed}; open it again"
            )

    def _break_on_failure(self) -> _BreakOnFailure:
        return _BreakOnFailure(self)


class _BreakOnFailure:
    """Whatever goes wrong inside, the journal is not written again: only the archive knows now what is in it."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __enter__(self) -> None:
        self._journal._check_open()

    def __exit__(self, kind: object, failure: BaseException | None, at: object) -> None:
        if failure is not None:
            self._journal._closed = "a write failed"


@dataclass
class JournalPlace:
    """Where a journal is in the archive; without a file it is nowhere yet."""

    file: SourceFile | None = None
    version: Version = field(default_factory=Version)


def journal_path(session: str) -> str:
    """The name of a journal among the files of the archive. No place on a disk has such a name."""
    return f"{AGENT}:{session}"


def find_journal(store: Store, session: str, machine: str) -> JournalPlace:
    """Where the journal is, of whichever machine it was begun on."""
    for row in store.sessions_of(AGENT, session):
        file, version = store.file_by_id(store.version(row.version).source)
        if file.path == journal_path(session):
            return JournalPlace(file, version)
    found = store.file(machine, journal_path(session))
    return JournalPlace(*found) if found is not None else JournalPlace()


class JournalEnd:
    """The end of one journal, as one process knows it. Rows of an older parser are made anew when it is looked for."""

    def __init__(self, store: Store, session: str, place: JournalPlace, whose: tuple[str, str], clock: Clock) -> None:
        self._store, self._session, self._clock, self._source = store, session, clock, all_sources()[AGENT]
        self._found = SourceCandidate(Path(journal_path(session)), "main", session)
        file, version = place.file, place.version
        self._desk = ArchiveWriter(store, *((file.machine, file.owner) if file else whose), clock())
        if file is not None:
            derive_pending(self._desk, self._source, file, version)
        candidate = FileCandidate(self._source, self._found, file, version if file else None, None)
        self._intake = ReaderStart(candidate, "full", version, reason="" if file else "first")
        in_step = file is None or version.parser == self._source.parser
        self._reader = self._source.reader(self._found, version.state) if in_step else None
        self.commits = 0

    @property
    def is_new(self) -> bool:
        """Is there no journal yet?"""
        return bool(self._intake.reason)

    @property
    def has_unread(self) -> bool:
        """Are there bytes without rows?"""
        return self._intake.version.parsed < self._intake.version.size

    def whole(self) -> bytes:
        """Every line from the beginning."""
        version = self._intake.version
        return b"" if self.is_new else self._store.read_raw(version.id, 0, version.size)

    def append(self, data: bytes) -> None:
        """Add lines. Raises Conflict when this is not the end any more."""
        self._desk.now = self._clock()
        try:
            with self._store.write():
                write_piece(self._desk, self._read_piece(data))
        except EverturnError:
            raise
        except Exception as failure:  # rows could not be made: a defect of ours must not cost what was said
            self._reader = None
            with self._store.write():
                piece = self._read_piece(data)
                why = f"rows could not be made ({type(failure).__name__}) after byte {piece.at}"
                write_piece(self._desk, replace(piece, changes=piece.changes | {"parser": -1}, failed=why))
        self.commits += 1

    def _read_piece(self, data: bytes) -> FilePiece:
        """What is new, read: with what was stored while somebody derived the rows again, if there is any."""
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
        """Another process may have derived the rows again, or be about to (`rebuild`, an upgrade)."""
        try:
            row = self._store.version(version.id)
        except NothingFound as failure:
            raise Conflict(f"session {self._session}") from failure
        moved = (row.parsed, row.parser, row.state) != (version.parsed, version.parser, version.state)
        version.lines, version.glued = row.lines, row.glued
        if moved:
            version.parsed, version.parser, version.state = row.parsed, row.parser, row.state
            in_step = row.parser == self._source.parser
            self._reader = self._source.reader(self._found, row.state) if in_step else None
