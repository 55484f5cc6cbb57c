"""The archive behind one contract. `open_store(url)` gives a `Store`; every engine passes `tests/store/test_contract.py`.

Layers: raw (files, versions, chunks) is the truth; derived (sessions, turns, messages, calls …) and the index are
rebuilt from it; kept (tombstones, notes …) cannot be derived and is never touched by a rebuild.

All writes happen inside `with store.write():`, one transaction that is either there as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from msgspec import Struct

from everturn.clock import now
from everturn.model.archive import (
    Artifact,
    Call,
    CensusRow,
    Chunk,
    Growth,
    Kept,
    LinkRow,
    MessageRow,
    ProblemRow,
    Session,
    SessionText,
    SourceFile,
    Step,
    Tail,
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


class Query(Struct, frozen=True):
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


class Hit(Struct, frozen=True):
    """A message that matches. `seq` is -1 when the session's own title or summary matched."""

    session: int
    seq: int
    score: float  # higher is better


class Health(Struct, frozen=True):
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

    def check(self, quick: bool = False) -> Health:
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

    def tail(self, session: int) -> Tail: ...
    def append(self, session: int, growth: Growth) -> None:
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

    def sessions_of(self, agent: str, native_id: str) -> list[Session]: ...
    def sessions_in(self, version: int) -> list[Session]: ...
    def turns(self, session: int, first: int = 0, last: int | None = None) -> list[Turn]: ...
    def steps(self, session: int, turn: int | None = None) -> list[Step]: ...
    def messages(self, session: int, first: int = 0, last: int | None = None) -> Iterator[MessageRow]:
        """By seq, both ends included, streamed."""

    def calls(self, session: int, turn: int | None = None) -> list[Call]: ...
    def artifacts(self, session: int) -> list[Artifact]: ...
    def links(self, session: int) -> list[LinkRow]: ...
    def links_to(self, native_id: str) -> list[LinkRow]: ...
    def search(self, query: Query) -> list[Hit]: ...
    def problems(self, version: int | None = None, limit: int = 1000) -> list[ProblemRow]: ...
    def census(self, version: int | None = None) -> list[CensusRow]:
        """Of one version, or summed over all current ones (version 0 in the rows)."""

    # kept ---------------------------------------------------------------------------------------------------------
    def keep(self, row: Kept) -> None:
        """Insert or replace by (kind, agent, subject, key)."""

    def kept(self, kind: str = "", subject: str | None = None) -> list[Kept]:
        """What is kept of a kind ("" = every kind), or about one subject."""

    def bury(self, rows: list[Tombstone]) -> None: ...
    def tombstones(self) -> list[Tombstone]: ...

    # erasing ------------------------------------------------------------------------------------------------------
    def delete_file(self, source: int) -> None:
        """Remove a source file: all versions, chunks nobody else uses, everything derived, its sessions."""

    def scrub(self) -> None:
        """After deletions: no byte of what was deleted is left in the database, its log or its free pages."""


def open_store(url: str, create: bool = True, clock: Any = None) -> Store:
    """Open an archive: a path or sqlite:path, memory:, or postgresql://…; migrates it when it is older."""
    if url.startswith(("postgresql:", "postgres:")):
        from everturn.store import postgres

        return postgres.open_postgres(url, create)
    from everturn.store import sqlite

    return sqlite.open_sqlite(url, create, clock or now)
