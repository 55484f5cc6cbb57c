"""The journal of a running session, written record by record into the archive.

When a method returns, its records are durable; when it raises, the journal is closed for good and must be opened anew. The
connection decides how durable (`open_archive`):

    power      every commit is synced (SQLite `synchronous=FULL`): survives the process, the system and a power failure
    process    commits are handed to the system (`NORMAL`): survives `kill -9`, but a power failure may lose the last ones

Each record is one line at the end of the raw layer of `journal:SESSION`; its rows, its index text and the cursor are
written in the same transaction, so the session can be searched, exported, verified, forgotten and rebuilt like any other.
Records that several threads submit at the same time share one transaction and one sync (`GroupCommit`). A failed sync is
never retried.

Lines are added only at the end their writer knows: if another process has added some, that is a Conflict and nothing is
written. Others may derive the rows again at any time; the next line picks that up. If rows cannot be made, the bytes are
kept and the rows are made later.

The user's capture rules hold here too (`capture.policy`): where they do not allow the session to be kept, the journal
is written to an archive in memory, and `Journal.open` warns.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from os import PathLike, fspath
from typing import Any, Generic, TypeVar, cast

from everturn.capture import policy as user_rules
from everturn.capture.policy import Policy
from everturn.clock import Clock, new_id, now
from everturn.errors import Busy, Conflict, EverturnError, ToolIdempotencyError, UnknownSession, UsageError
from everturn.llm.protocol import ChatPart, Reply, ToolSpec, encode_json
from everturn.loop import leases, records
from everturn.loop.journal_state import AGENT, JournalEnd, JournalPlace, JournalState, Mask, find_journal
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
from everturn.loop.tools import milliseconds
from everturn.store.contract import Store, open_store

T = TypeVar("T")

DURABILITIES = ("power", "process")

#: Kinds of states: the value of a step, the time of a sleeper.
STEP, TIMER = "step/", "timer/"

#: Refers to the last response, in the same call or before.
LAST = -1

_TRIES = 5


@dataclass(frozen=True)
class JournalAbout:
    """Facts about a new session. For an existing one only `machine` is used: who takes it over."""

    machine: str = ""
    owner: str = ""
    workspace: str = ""
    model: str = ""
    client: str = "everturn"
    title: str = ""
    parent: str = ""
    relation: str = ""  # to the parent: continues | forked_from
    also: tuple[str, ...] = ()  # further sessions it continues
    hold: int = 0  # characters of messages that are held in memory; 0: all. The archive has all of them


def open_archive(url: str, durability: str = "power") -> Store:
    """Open a connection for a journal. The module docstring explains `durability`."""
    if durability not in DURABILITIES:
        raise UsageError(f"durability {durability!r} is not offered; say {' or '.join(DURABILITIES)}")
    user_rules.use_user_keys()
    return open_store(url, durable=durability == "power")


class Journal:
    """One session, open for writing. Made by `Journal.open`. May be used from several threads.

    The store belongs to the journal while it is open: use it elsewhere only inside `with journal.alone:`.
    """

    def __init__(
        self,
        store: Store,
        past: JournalState,
        place: JournalPlace,
        about: JournalAbout,
        clock: Clock,
        ttl: int,
        mask: Mask | None = None,
    ) -> None:
        self.store, self.past, self.clock, self.ttl = store, past, clock, ttl
        self.session = past.session
        self._end = JournalEnd(store, self.session, place, (about.machine, about.owner), clock, mask)
        self._group: GroupCommit[Sequence[Record]] = GroupCommit(self._commit)
        self.alone = self._group.turn
        self._renew_at = 0
        self._holder: LeaseHolder | None = None
        self._closed, self._released = "", False
        self._opened: Store | None = None  # for this journal

    @property
    def is_masked(self) -> bool:
        """Whether secrets are masked in what is written."""
        return self._end.is_masked

    @property
    def commits(self) -> int:
        """Return the number of transactions written so far."""
        return self._end.commits

    @classmethod
    def open(
        cls,
        store: Store | str | PathLike[str],
        session: str = "",
        about: JournalAbout = JournalAbout(),  # noqa: B008 -- frozen
        holder: LeaseHolder | None = None,
        clock: Clock = now,
        ttl: int = TTL_MS,
        force: bool = False,
        policy: Policy | None = None,
    ) -> Journal:
        """Open a session, or begin one if no session has that name. `policy`: else the user's own rules.

        An archive by its path or URL is opened for the journal and closed with it. Raise Busy if another process runs
        the session; `force` takes it over, and the next write of that process fails.
        """
        session = session or new_id()
        if isinstance(store, str | PathLike):
            return cls._open_url(fspath(store), session, about, holder, clock, ttl, force, policy)
        if any((row.kind, row.agent, row.key) == ("session", AGENT, session) for row in store.tombstones()):
            raise UnknownSession(session)
        holder = holder or leases.this_process(about.machine)
        store, mask = user_rules.permitted_store(store, AGENT, session, about.workspace, policy)
        for _ in range(_TRIES):
            journal = cls._load(store, session, about, clock, ttl, mask)
            try:
                journal._take_lease(about, holder, force)
                return journal
            except Conflict:
                continue  # another process wrote in between
        raise Busy(f"session {session}")

    def abandon(self) -> None:
        """Leave the session as unfinished: it can be taken at once, and recovery finds it."""
        with self.alone, self.store.write():
            leases.renew_lease(self.store, self.session, self.past.token, self.clock(), 1)
        self._closed, self._released = "it was abandoned", True
        leases.discard_owner(self._holder)

    @classmethod
    def _open_url(cls, url: str, *given: Any) -> Journal:
        store = open_archive(url)
        try:
            journal = cls.open(store, *given)
        except BaseException:
            store.close()
            raise
        journal._opened = store
        return journal

    @staticmethod
    def exists(store: Store, session: str) -> bool:
        return find_journal(store, session, "").file is not None

    @classmethod
    def _load(
        cls, store: Store, session: str, about: JournalAbout, clock: Clock, ttl: int, mask: Mask | None
    ) -> Journal:
        place = find_journal(store, session, about.machine)
        journal = cls(store, JournalState(session, hold=about.hold), place, about, clock, ttl, mask)
        for raw in journal._end.lines():
            if raw.strip():
                journal.past.take(records.parse_record(raw, session))
            else:  # a record was forgotten
                journal.past.count += 1
        return journal

    def _take_lease(self, about: JournalAbout, holder: LeaseHolder, force: bool) -> None:
        with self.alone:
            timer, at = self._timer(), self._lease_time()
            with self.store.write():
                if self._end.is_new and self.exists(self.store, self.session):
                    raise Conflict(f"session {self.session}")  # another machine was first
                token = leases.take_lease(self.store, self.session, holder, at, at + self.ttl, force)
                record: Record = records.LeaseRecord(token=token, holder=str(holder))
                if self._end.is_new:
                    record = records.SessionRecord(
                        journal=records.FORMAT, id=self.session, workspace=about.workspace, model=about.model, client=about.client,
                        title=about.title, parent=about.parent, relation=about.relation, also=about.also, token=token,
                        holder=str(holder),
                    )  # fmt: skip
                self._commit([[record]])
            leases.register_owner(holder, self)
            self._holder = holder
            self._renew_at = timer + self.ttl // 3

    def renew(self) -> None:
        """Renew the lease if it is due. Raise Conflict if another process has taken the session."""
        if (timer := self._timer()) < self._renew_at:
            return
        with self.alone, _BreakOnFailure(self), self.store.write():
            at = self._lease_time()
            leases.renew_lease(self.store, self.session, self.past.token, at, at + self.ttl)
        self._renew_at = (
            timer + self.ttl // 3
        )  # from the time before the write, as the lease runs: a write may take long

    def _lease_time(self) -> int:
        """Return the time by which leases run out: that of the server, if the caller has no clock of its own."""
        return (self.store.server_time() if self.clock is now else None) or self.clock()

    def _timer(self) -> int:
        """Return ms for renewals, which no change of the system's clock moves."""
        return time.monotonic_ns() // 1_000_000 if self.clock is now else self.clock()

    def close(self) -> None:
        """Release the session. The store stays open, unless it was opened for this journal. A second call does nothing."""
        with self.alone:
            if self._released:
                return
            if not self._closed and self._end.has_unread:
                with suppress(EverturnError), _BreakOnFailure(self):
                    self._end.append(b"")
            self._closed, self._released = self._closed or "it was closed", True
            leases.discard_owner(self._holder)
            # If the lease is no longer ours or cannot be written, it expires.
            with suppress(EverturnError), self.store.write():
                leases.renew_lease(self.store, self.session, self.past.token, self.clock(), 0)
            if self._opened is not None:
                self._opened.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    # --- records ---
    def write(self, *many: Record) -> None:
        """Write records together. All other methods use this one."""
        self._group.submit(many)

    def setup(self, system: str, tools: Sequence[ToolSpec] = ()) -> None:
        """Record the system prompt and the tools from here on, if they have changed."""
        if (system, tuple(tools)) != (self.past.system, self.past.tools):
            self.write(records.SetupRecord(system=system, tools=tuple(tools)))

    def accept(self, prompt: str | Sequence[ChatPart]) -> None:
        """Record a message of the human. Raise UsageError while calls of the last response have no result."""
        parts = (ChatPart("text", prompt),) if isinstance(prompt, str) else tuple(prompt)
        self.write(records.UserRecord(parts=parts))

    def response(
        self,
        reply: Reply,
        intend: Sequence[IntendedCall] = (),
        wait: Sequence[str] = (),
        sent: RequestRecord | None = None,
        given_ids: Mapping[str, str] | None = None,
    ) -> None:
        """Record a response, with the calls that start at once and those that wait for approval.

        `given_ids` has the provider's id of each call that got another one (`unique_calls`).
        """
        unknown = {one.call_id for one in intend}.union(wait) - {part.call_id for part in reply.calls}
        if unknown:
            raise UsageError(f"the response has no call {', '.join(sorted(unknown))}")
        more: list[Record] = [IntentRecord(of=LAST, calls=tuple(intend))] if intend else []
        if wait:
            more.append(PauseRecord(of=LAST, why="approval", calls=tuple(wait)))
        self.write(records.ResponseRecord(reply=reply, sent=sent, given_ids=dict(given_ids or {})), *more)

    def intend(self, calls: Sequence[IntendedCall]) -> None:
        """Record that these calls of the last response are about to run."""
        self.write(IntentRecord(of=LAST, calls=tuple(calls)))

    def result(
        self, call_id: str, text: str, is_error: bool = False, outcome: str = "ok", ms: int | None = None
    ) -> None:
        """Record the result of a call of the last response. Raise Conflict if it already has one."""
        self.write(ResultRecord(of=LAST, call_id=call_id, text=text, is_error=is_error, outcome=outcome, ms=ms))

    def approve(self, call_id: str, by: str = "", arguments: dict[str, Any] | None = None) -> None:
        """Let a waiting call run; one in doubt, run again. `arguments` replace the model's, and the model is told.

        Raise UsageError if the tool has no argument of such a name, or lacks one that it needs.
        """
        if arguments is not None:
            self._check_arguments(call_id, arguments)
        self.write(DecisionRecord(of=LAST, call_id=call_id, verdict="approve", by=by, arguments=arguments))

    def _check_arguments(self, call_id: str, arguments: dict[str, Any]) -> None:
        """Compare the names with those that the model was shown. The values are validated when the call runs."""
        call = self.past.calls.get(call_id)
        shown = next((one.parameters for one in self.past.tools if call is not None and one.name == call.part.name), {})
        known = shown.get("properties")
        if call is None or not isinstance(known, dict):
            return
        unknown = arguments.keys() - known.keys() if shown.get("additionalProperties") is False else set()
        for word, names in (("has no argument", unknown), ("needs", set(shown.get("required", ())) - arguments.keys())):
            if names:
                there = ", ".join(known) or "none"
                raise UsageError(f"{call.part.name} {word} {', '.join(sorted(names))}; its arguments are {there}")

    def deny(self, call_id: str, text: str = "", by: str = "") -> None:
        """Refuse a waiting call; one in doubt does not run again."""
        self.write(DecisionRecord(of=LAST, call_id=call_id, verdict="deny", text=text, by=by))

    def settle(self, call_id: str, text: str, by: str = "") -> None:
        """State the result of a call in doubt, so that it need not run again."""
        self.write(DecisionRecord(of=LAST, call_id=call_id, verdict="settle", text=text, by=by))

    def inject(self, text: str, why: str) -> None:
        """Put text of a program into the conversation. The model gets it; it is not attributed to the human."""
        self.write(self.past.injection(text, why))

    def note(self, text: str, kind: str = "", data: Any = None) -> None:
        """Keep a note beside the conversation."""
        self.write(records.NoteRecord(kind=kind, text=text, data=data))

    def state(self, kind: str, data: Any) -> None:
        """Keep the state of a program that runs on this journal; `past.states` has the last of each kind."""
        self.write(records.StateRecord(kind=kind, data=data))

    # --- steps of a program ---
    def step(self, name: str, work: Callable[[], T], once: bool = False) -> T:
        """Run `work` and record its value, a JSON value, under a name. Later the recorded one is returned.

        A process that dies in between runs it again, unless `once`: then ToolIdempotencyError is raised until somebody
        states the value (`state(f"step/{name}", {"value": …})`).
        """
        known = self.past.states.get(f"{STEP}{name}")
        if isinstance(known, dict) and "value" in known:
            return cast(T, known["value"])
        if once:
            if known is not None:
                raise ToolIdempotencyError({name: "step"})
            self.state(f"{STEP}{name}", {"begun": True})
        value = work()
        try:
            encode_json({"value": value})
        except TypeError as failure:
            raise UsageError(
                f"step {name.rpartition('/')[2]}: its value cannot be recorded as JSON: {failure}"
            ) from failure
        self.state(f"{STEP}{name}", {"value": value})
        return value

    def wake_time(self, name: str, when: int) -> int:
        """Record when a sleeper wakes up, in ms UTC, and return it; the time that was recorded first is valid."""
        known = self.past.states.get(f"{TIMER}{name}")
        if isinstance(known, dict) and isinstance(known.get("until"), int):
            return int(known["until"])
        self.state(f"{TIMER}{name}", {"until": when})
        return when

    def sleep_until(self, when: datetime | int, name: str = "") -> None:
        """Sleep until a time (aware, or ms UTC). After a crash, the same call only sleeps for what is left."""
        wake = self.wake_time(name, milliseconds(when))
        while (left := wake - self.clock()) > 0:
            self.renew()
            time.sleep(min(left / 1000, self.ttl / 3000))

    def now(self) -> int:
        """Return the time in ms UTC."""
        return self.clock()

    # --- writing ---
    def _commit(self, batch: Sequence[Sequence[Record]]) -> list[Exception | None]:
        """Write the records of several threads. Records that do not fit this order are refused, the rest is written."""
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
            with _BreakOnFailure(self):
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


class _BreakOnFailure:
    """Closes the journal after any failure inside: then only the archive knows its content."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __enter__(self) -> None:
        self._journal._check_open()

    def __exit__(self, kind: object, failure: BaseException | None, at: object) -> None:
        if failure is not None:
            self._journal._closed = "a write failed"


# --- Group commit: what several threads write at the same time shares one transaction and one sync ---
#: Writes several items as one; returns for each the refusal, or None. Raises if nothing was written.
Commit = Callable[[Sequence[T]], Sequence[Exception | None]]


class _Ticket(Generic[T]):
    def __init__(self, item: T) -> None:
        self.item = item
        self.done = False
        self.failure: BaseException | None = None


class GroupCommit(Generic[T]):
    """Merges the writes of several threads. The first writes; later arrivals share the next transaction."""

    def __init__(self, commit: Commit[T]) -> None:
        self._commit = commit
        self._arrivals = threading.Lock()
        self.turn = threading.RLock()  # held while writing; other users of the connection take it too
        self._waiting: list[_Ticket[T]] = []

    def submit(self, item: T) -> None:
        """Return when `item` is written; raise if it is not."""
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
