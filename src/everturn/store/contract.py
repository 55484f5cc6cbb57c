"""The archive behind one contract. `open_store(url)` gives a `Store`; every engine passes `tests/store/test_contract.py`.

Layers: raw (files, versions, chunks) is the truth; derived (sessions, turns, messages, calls …) and the index are
rebuilt from it; kept (tombstones, notes …) cannot be derived and is never touched by a rebuild.

All writes happen inside `with store.write():`, one transaction that is either there as a whole or not at all.

Which file an archive is, for those who keep it open for long: another may come to lie in its place.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from everturn.clock import now
from everturn.model.analytics import ActivityRow, PlaneTable, Trail, UsageRow
from everturn.model.archive import (
    Artifact,
    Call,
    CensusRow,
    Chunk,
    HookEvent,
    JournalTail,
    KeptRow,
    LinkRow,
    MessageRow,
    ProblemRow,
    Session,
    SessionGrowth,
    SessionText,
    SourceFile,
    Step,
    Tombstone,
    Turn,
    Version,
)


class SessionFilter(Struct, frozen=True):
    """Which sessions to list. Empty fields do not filter."""

    agent: str = ""
    workspace: str = ""  # part of the path, case-insensitive
    since: int | None = None  # ended at or after
    until: int | None = None  # started before
    text: str = ""  # part of title, first prompt or summary, case-insensitive
    kinds: tuple[str, ...] = ("main",)
    states: tuple[str, ...] = ("current",)
    machine: str = ""
    owner: str = ""
    branch: str = ""  # part of the name, case-insensitive


class IndexQuery(Struct, frozen=True):
    """A full-text request: every group must match in one message; a group is any one of its phrases.

    A phrase is a tuple of analysed terms (`derive.analysis.terms`) that stand side by side; the last term of a phrase
    ending in `*` matches by prefix. Phrases of `optional` make a hit better; one of them must match where there are no
    groups. `fields` limits where the words may stand. What is empty or None does not limit.
    """

    groups: tuple[tuple[tuple[str, ...], ...], ...]
    without: tuple[tuple[str, ...], ...] = ()
    fields: tuple[str, ...] = ()
    session: int | None = None
    sessions: SessionFilter | None = None
    origins: tuple[str, ...] = ()
    since: int | None = None  # of the message
    until: int | None = None
    limit: int = 20
    offset: int = 0
    optional: tuple[tuple[str, ...], ...] = ()
    within: tuple[int, ...] = ()  # only in these sessions: a lineage
    roles: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()  # only messages that call such a tool, or hold its result
    path: str = ""  # only messages with a call that touched a path with this part, case-insensitive
    errors: bool | None = None  # only messages with (or without) a call that failed, or the result of one
    turns: tuple[int, int] | None = None  # both ends included
    weights: tuple[float, ...] = ()  # how much each of `optional` counts; 1 where nothing is said
    about: tuple[tuple[int, int], ...] = ()  # times that are spoken of: no limit, what is said then is better


class IndexEntry(NamedTuple):
    """A message that may be meant, or a session's own entry (`seq` -1), and how much of each phrase it holds.

    `held` are pairs: the number of a phrase of `Candidates.phrases`, and how much of it stands there, from just above 0
    to 1, by how often, in which field and in how long a text.
    """

    session: int
    seq: int
    held: tuple[tuple[int, float], ...]


class IndexCandidates(Struct, frozen=True):
    """What is worth ranking for a query. No entry comes twice; the order means nothing."""

    phrases: tuple[tuple[str, ...], ...]  # of the groups, then the optional ones
    weights: tuple[float, ...]
    counts: tuple[float, ...]  # entries that hold the phrase, in the whole index: estimated when they are many
    total: int  # entries in the whole index
    entries: list[IndexEntry]
    complete: bool  # every entry that fits is there


class IndexHit(Struct, frozen=True):
    """A message that matches. `seq` is -1 when the session's own title or summary matched."""

    session: int
    seq: int
    score: float  # higher is better


class StoreHealth(Struct, frozen=True):
    """What `check` found. `problems` is empty when all is well."""

    engine: str
    schema: int
    problems: list[str]


class Store(Protocol):
    """One archive. Not shared between threads: open one per thread."""

    url: str

    # life ---------------------------------------------------------------------------------------------------------
    def close(self) -> None: ...
    def write(self) -> AbstractContextManager[None]:
        """One write transaction (BEGIN IMMEDIATE). Raises Busy, NoSpace."""

    def reading(self) -> AbstractContextManager[None]:
        """One view of the archive for the whole block, whatever others write meanwhile. Nothing is written in it."""

    def check(self, quick: bool = False) -> StoreHealth:
        """Ask the engine whether the database is whole."""

    def backup(self, path: str) -> None:
        """Copy the whole archive into a new file while others go on writing. Raises Usage where not offered."""

    def setting(self, key: str) -> str: ...
    def set_setting(self, key: str, value: str) -> None: ...
    def sizes(self) -> dict[str, int]:
        """Bytes by part (raw, index, rest, total), for `doctor` and the benchmarks."""

    # raw ----------------------------------------------------------------------------------------------------------
    def files(self, machine: str = "") -> list[tuple[SourceFile, Version]]:
        """Every source file with its current version: one query, for the scan of a sync."""

    def file(self, machine: str, path: str) -> tuple[SourceFile, Version] | None: ...
    def file_by_id(self, source: int) -> tuple[SourceFile, Version]: ...
    def add_file(self, row: SourceFile) -> int: ...
    def set_file(self, source: int, **changes: Any) -> None: ...
    def versions(self, source: int) -> list[Version]: ...
    def version(self, version: int) -> Version: ...
    def add_version(self, row: Version) -> int:
        """Insert it, make it the current one of its source and mark the sessions of older versions superseded."""

    def set_version(self, version: int, **changes: Any) -> None: ...
    def move_cursor(self, version: int, offset: int, /, **changes: Any) -> None:
        """Change the row if its offset is still `offset`, else raise Conflict."""

    def append_raw(self, version: int, at: int, data: bytes) -> None:
        """Store `data` at stored offset `at`, which is the end. The last chunk is replaced until it is big enough."""

    def share_raw(self, old: int, new: int, size: int) -> int:
        """Let `new` begin with the whole chunks of `old` that lie before `size`; returns how many bytes that is."""

    def read_raw(self, version: int, start: int, size: int) -> bytes: ...
    def chunks(self, version: int) -> list[Chunk]: ...
    def read_chunk(self, digest: bytes) -> bytes:
        """The bytes behind a digest. Raises NotAnArchive when they are missing or do not match it."""

    def put_chunks(self, version: int, chunks: Iterable[tuple[int, bytes]]) -> None:
        """Replace the bytes at given chunk starts by others of the same length (forget, merge)."""

    # derived ------------------------------------------------------------------------------------------------------
    def open_session(self, row: Session) -> Session:
        """The session of (version, native_id): found, or made from `row`. The id never changes, also not in a rebuild."""

    def tail(self, session: int) -> JournalTail: ...
    def append(self, session: int, growth: SessionGrowth) -> None:
        """Add rows and index text; find out which messages are inherited; bring the session's counters up to date."""

    def set_session(self, session: int, **changes: Any) -> None: ...
    def set_text(self, row: SessionText) -> None:
        """Replace the content facts and the session's own index entry."""

    def add_problems(self, rows: list[ProblemRow]) -> None: ...
    def clear_provisional(self, version: int) -> None: ...
    def add_census(self, rows: list[CensusRow]) -> None: ...
    def drop_derived(self, version: int) -> None:
        """Delete everything derived from a version, index included. Session rows stay, emptied, with their ids."""

    # questions ----------------------------------------------------------------------------------------------------
    def sessions(
        self, wanted: SessionFilter, limit: int = 50, after: str = ""
    ) -> tuple[list[tuple[Session, SessionText]], str]:
        """Newest first (ended, then id), with a cursor for the next page ("" at the end)."""

    def count_sessions(self, wanted: SessionFilter) -> int: ...
    def session(self, session: int) -> tuple[Session, SessionText]: ...
    def sessions_like(self, prefix: str, limit: int = 20) -> list[Session]:
        """Sessions whose native id, or the part of it after the last `/`, starts with this. All states."""

    def beside(self, agent: str, native_id: str) -> tuple[str, str]:
        """The ids of an agent's main sessions next to this one, before and after it in order; "" where there is none."""

    def sessions_of(self, agent: str, native_id: str) -> list[Session]: ...
    def sessions_in(self, version: int) -> list[Session]: ...
    def turns(self, session: int, first: int = 0, last: int | None = None) -> list[Turn]: ...
    def steps(self, session: int, turn: int | None = None) -> list[Step]: ...
    def messages(self, session: int, first: int = 0, last: int | None = None) -> Iterator[MessageRow]:
        """By seq, both ends included, streamed."""

    def calls(self, session: int, turn: int | None = None) -> list[Call]: ...
    def work(self, session: int) -> list[tuple[int, str, int]]:
        """How many calls of which kind each turn made: (turn, kind, n), without a word of them."""

    def artifacts(self, session: int) -> list[Artifact]: ...
    def links(self, session: int) -> list[LinkRow]: ...
    def links_to(self, native_id: str) -> list[LinkRow]: ...
    def search(self, query: IndexQuery) -> list[IndexHit]:
        """Every entry that fits, best first by its own words alone, a page of it.

        Looks at all of them, however many: it is there to say what is right, in the contract's tests and in benchmarks.
        What people and agents ask goes through `candidates`.
        """

    def candidates(self, query: IndexQuery, most: int = 0) -> IndexCandidates:
        """What is worth ranking, about `most` entries (0 = all): those with the rarest words, and the best of these.

        `limit` and `offset` are not looked at.
        """

    def known(self, words: Sequence[str]) -> dict[str, int]:
        """Those of the words that stand in the archive, in how many entries (more than a few are not counted)."""

    def times(self, sessions: Sequence[int]) -> dict[int, tuple[int | None, int | None]]:
        """When sessions started and ended."""

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        """Indexed terms with this beginning, stemmed, at most so many; none where the engine cannot list them."""

    def problems(self, version: int | None = None, limit: int = 1000) -> list[ProblemRow]: ...
    def census(self, version: int | None = None) -> list[CensusRow]:
        """Of one version, or summed over all current ones (version 0 in the rows)."""

    # analytics ----------------------------------------------------------------------------------------------------
    def stale_sessions(self, limit: int = 100) -> list[tuple[int, int]]:
        """Sessions whose counts are out of date, lowest id first, each with its number of calls."""

    def recount(self, sessions: Sequence[int]) -> None:
        """Count these sessions again and change the totals by the difference."""

    def check_rules(self) -> bool:
        """Was the plane counted by the rules of this version? If not it is emptied, to be counted anew."""

    def totals(self, table: str, subagents: bool = True, least: int = 1) -> dict[tuple[int | str, ...], list[int]]:
        """A table of `model.analytics.TALLIES`: key (without `subagent`) → counters. Rows with n below `least` are left out."""

    def trails(
        self, wanted: SessionFilter | None = None, only: Sequence[int] = (), subagents: bool = True
    ) -> Iterator[tuple[int, Trail]]:
        """The tool use of sessions, lowest id first. `kinds` and `states` of the filter are not looked at."""

    def usage(
        self, wanted: SessionFilter | None = None, only: Sequence[int] = (), subagents: bool = True
    ) -> list[UsageRow]:
        """Tokens of sessions by quarter of an hour and model, inherited ones marked."""

    def activity(
        self, wanted: SessionFilter | None = None, only: Sequence[int] = (), subagents: bool = True
    ) -> list[ActivityRow]:
        """Turns and calls of sessions by quarter of an hour."""

    def plane_rows(self, table: PlaneTable) -> Iterator[tuple[Any, ...]]:
        """All rows of one of `model.analytics.PLANE`, in order, streamed."""

    # kept ---------------------------------------------------------------------------------------------------------
    def keep(self, row: KeptRow) -> None:
        """Insert or replace by (kind, agent, subject, key)."""

    def kept(self, kind: str = "", subject: str | None = None) -> list[KeptRow]:
        """What is kept of a kind ("" = every kind), or about one subject."""

    def drop_kept(self, agent: str, subject: str, kinds: Sequence[str] = ()) -> None:
        """Give up what is kept about a session, of some kinds or all; also what is kept whichever agent it is of."""

    def bury(self, rows: list[Tombstone]) -> None: ...
    def tombstones(self) -> list[Tombstone]: ...
    def add_hooked(self, rows: Iterable[HookEvent]) -> int:
        """Add what hooks have heard and is not there yet; how many rows that were."""

    def hooked(self, session: str = "") -> list[HookEvent]:
        """What hooks have heard, in order of time: of one session by its native id, or all."""

    def hooked_alone(self, since: int = 0) -> dict[str, int]:
        """Native ids of sessions with calls, heard since then, that were not found in the archive; how many each."""

    def find_hooked(self, sessions: Iterable[str]) -> None:
        """Look in the archive for the calls of these sessions that were not found before."""

    def drop_hooked(self, sessions: Sequence[str]) -> None:
        """Give up what was heard of sessions."""

    # erasing ------------------------------------------------------------------------------------------------------
    def delete_file(self, source: int) -> None:
        """Remove a source file: all versions, chunks nobody else uses, everything derived, its sessions."""

    def scrub(self) -> None:
        """After deletions: no byte of what was deleted is left in the database, its log or its free pages."""


def open_store(url: str, create: bool = True, clock: Any = None, upgrade: bool = True, durable: bool = False) -> Store:
    """Open an archive: a path or sqlite:path, memory:, or postgresql://…; migrates it when it is older.

    Without `upgrade` an older one stays as it is and OlderArchive is raised. With `durable` a commit has reached the disk
    when it returns; without it the last ones may go with the power (never with the process).
    """
    if url.startswith(("postgresql:", "postgres:")):
        from everturn.store import postgres

        return postgres.open_postgres(url, create, clock or now, upgrade, durable)
    from everturn.store import sqlite

    return sqlite.open_sqlite(url, create, clock or now, durable, upgrade)


def archive_identity(url: str) -> tuple[int, int] | None:
    """The same as long as it is the same file; None when it is not a file, or not there."""
    try:
        found = os.stat(url)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino
