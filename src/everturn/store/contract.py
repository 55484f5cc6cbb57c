"""The contract of an archive. `open_store(url)` returns a `Store`; every engine passes `tests/store/test_contract*.py`.

Layers: raw (files, versions, chunks) is the truth. Derived (sessions, turns, messages, calls …) and the index are rebuilt
from it. Kept (tombstones, notes …) cannot be derived, and a rebuild never touches it.

All writes happen inside `with store.write():`, one transaction that is applied as a whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from everturn.clock import now
from everturn.model.analytics import ActivityRow, PlaneTable, Trail, UsageRow
from everturn.model.archive import (
    Artifact,
    Call,
    CensusRow,
    Chunk,
    EditRow,
    FrameworkData,
    HookEvent,
    JournalTail,
    KeptRow,
    LinkRow,
    MessageRow,
    PackedChunk,
    ProblemRow,
    ReportedWork,
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
    workspace: str = ""  # a folder and everything below it, or its name (`text.folders`)
    since: int | None = None  # ended at or after
    until: int | None = None  # started before
    text: str = ""  # part of title, first prompt or summary, case-insensitive
    kinds: tuple[str, ...] = ("main",)
    states: tuple[str, ...] = ("current",)
    machine: str = ""  # of a machine that pushed: its name, or `owner/name`
    owner: str = ""
    branch: str = ""  # part of the name, case-insensitive
    project: str = ""  # a repository such as github.com/example/shop, the end of one, or a folder's name


class AnalyticsScope(Struct, frozen=True):
    """Which sessions to count. What is empty does not limit; with nothing set the answer comes from the totals.

    `kinds` and `states` of the filter are not looked at: each call is counted once anyway.
    """

    sessions: SessionFilter | None = None
    only: tuple[int, ...] | None = None  # ids; an empty tuple is no session at all
    subagents: bool = True  # also what subagents did ("inclusive"), or only what main sessions did ("own")

    @property
    def everything(self) -> bool:
        filters = self.sessions or SessionFilter()
        return self.only is None and replace(filters, kinds=(), states=()) == SessionFilter(kinds=(), states=())


EVERYTHING = AnalyticsScope()


class ListedSession(NamedTuple):
    """The session that lists show for a row, which may be an older version or a copy of it."""

    session: int  # id of the row that is listed
    kind: str
    oldest: int  # id of the first row with this session


class IndexQuery(Struct, frozen=True):
    """A full-text query: every group must match in one message; a group matches by any one of its phrases.

    A phrase is a tuple of adjacent analysed terms (`text.terms.terms`); a last term that ends in `*` matches by prefix.
    Phrases of `optional` raise a hit's score; without groups, one of them must match. `fields` limits the fields that
    are searched. Empty and None do not limit.
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
    tools: tuple[str, ...] = ()  # only messages that call one of these tools or hold its result
    path: str = ""  # only messages with a call on a path that contains this, case-insensitive
    errors: bool | None = None  # only messages with (or without) a failed call or its result
    turns: tuple[int, int] | None = None  # both ends included
    weights: tuple[float, ...] = ()  # of each phrase of `optional`; 1 by default
    about: tuple[tuple[int, int], ...] = ()  # time ranges that raise the score of messages in them; not a limit


class IndexEntry(NamedTuple):
    """A candidate message, or a session's own entry (`seq` -1), and how much of each phrase it holds.

    `held` are pairs: the number of a phrase in `IndexCandidates.phrases` and its share, above 0 and at most 1. The share
    depends on how often the phrase occurs, in which field, and in how long a text.
    """

    session: int
    seq: int
    held: tuple[tuple[int, float], ...]


class IndexCandidates(Struct, frozen=True):
    """The entries worth ranking for a query, each once, in no particular order."""

    phrases: tuple[tuple[str, ...], ...]  # of the groups, then the optional ones
    weights: tuple[float, ...]
    counts: tuple[float, ...]  # entries with the phrase in the whole index; estimated when there are many
    total: int  # entries in the whole index
    entries: list[IndexEntry]
    complete: bool  # all matching entries are included
    times: dict[int, tuple[int | None, int | None]] = {}  # when sessions started and ended, if that is known already


class IndexHit(Struct, frozen=True):
    """A message that matches. `seq` is -1 when the session's own title or summary matched."""

    session: int
    seq: int
    score: float  # higher is better


class FoundEdit(Struct, frozen=True):
    """A row of the edit index with facts about its call."""

    row: EditRow
    call_id: str
    tool: str
    agent: str
    current: bool  # not of an older version of the session's file
    inherited: bool  # another session made the call


class StoreHealth(Struct, frozen=True):
    """The result of `check`. `problems` is empty when the database is whole."""

    engine: str
    schema: int
    problems: list[str]


class Store(Protocol):
    """One archive. Not shared between threads: open one per thread."""

    url: str

    # --- life cycle ---
    def close(self) -> None: ...
    def write(self) -> AbstractContextManager[None]:
        """Run one write transaction (BEGIN IMMEDIATE). Raises Busy, NoSpace."""

    def reading(self) -> AbstractContextManager[None]:
        """Read from one snapshot for the whole block, whatever others write meanwhile. The block must not write."""

    def check(self, quick: bool = False) -> StoreHealth:
        """Let the engine check the database."""

    def backup(self, path: str) -> None:
        """Copy the whole archive into a new file while others keep writing. Raises UsageError where not supported."""

    def setting(self, key: str) -> str: ...
    def set_setting(self, key: str, value: str) -> None: ...
    def sizes(self) -> dict[str, int]:
        """Return bytes by part (raw, index, rest, total), for the benchmarks."""

    # --- raw ---
    def files(self, machine: str = "") -> list[tuple[SourceFile, Version]]:
        """Return every source file with its current version, in one query, for the scan of a sync."""

    def file(self, machine: str, path: str) -> tuple[SourceFile, Version] | None: ...
    def file_by_id(self, source: int) -> tuple[SourceFile, Version]: ...
    def files_of(self, agent: str, parent: str, kind: str) -> list[tuple[SourceFile, Version]]:
        """Return the files of a kind that belong to a session, in order of their paths."""

    def add_file(self, row: SourceFile) -> int: ...
    def set_file(self, source: int, **changes: Any) -> None: ...
    def versions(self, source: int) -> list[Version]: ...
    def version(self, version: int) -> Version: ...
    def add_version(self, row: Version) -> int:
        """Insert a version, make it the current one of its source, and mark sessions of older versions superseded."""

    def set_version(self, version: int, **changes: Any) -> None: ...
    def move_cursor(self, version: int, offset: int, /, **changes: Any) -> None:
        """Update the row if its offset is still `offset`; otherwise raise Conflict."""

    def append_raw(self, version: int, at: int, data: bytes) -> None:
        """Store `data` at offset `at`, which must be the end. The last chunk is replaced until it is big enough."""

    def append_packed(self, version: int, at: int, chunks: Sequence[PackedChunk]) -> None:
        """Store bytes that another process cut and packed (`store.raw.ChunkPacker`) at offset `at`, which must be the end."""

    def share_raw(self, old: int, new: int, size: int) -> int:
        """Let `new` begin with the whole chunks of `old` that end within `size`; return the number of bytes."""

    def read_raw(self, version: int, start: int, size: int) -> bytes: ...
    def read_ranges(self, ranges: Sequence[tuple[int, int, int]]) -> list[bytes]:
        """Return the bytes of several (version, start, size), all at once: as many as are stored."""

    def chunks(self, version: int) -> list[Chunk]: ...
    def read_chunk(self, digest: bytes) -> bytes:
        """Return the bytes of a digest. Raises NotAnArchive if they are missing or do not match it."""

    def put_chunks(self, version: int, chunks: Iterable[tuple[int, bytes]]) -> None:
        """Replace the bytes at given chunk starts by others of the same length."""

    # --- derived ---
    def open_session(self, row: Session) -> Session:
        """Return the session of (version, native_id), inserted from `row` if new. Its id never changes, even in a rebuild."""

    def tail(self, session: int) -> JournalTail: ...
    def append(self, session: int, growth: SessionGrowth) -> None:
        """Add rows and index text, determine which messages are inherited, and update the session's counters."""

    def set_session(self, session: int, **changes: Any) -> None: ...
    def set_text(self, row: SessionText) -> None:
        """Replace the content facts and the session's own index entry."""

    def add_problems(self, rows: list[ProblemRow]) -> None: ...
    def clear_provisional(self, version: int) -> None: ...
    def add_census(self, rows: list[CensusRow]) -> None: ...
    def drop_derived(self, version: int) -> None:
        """Delete everything derived from a version, index included. Session rows stay, emptied, with their ids."""

    # --- questions ---
    def sessions(
        self, session_filter: SessionFilter, limit: int = 50, after: str = ""
    ) -> tuple[list[tuple[Session, SessionText]], str]:
        """Return sessions, newest first (ended, then id), and a cursor for the next page ("" at the end)."""

    def count_sessions(self, session_filter: SessionFilter) -> int:
        """Return how many sessions a list with this filter has. Every surface that says "sessions" counts by this rule."""

    def listed_sessions(self, ids: Sequence[int] = ()) -> dict[int, ListedSession]:
        """Return what lists show for main sessions and subagents, by id: for all of them, or for the rows with these ids."""

    def session(self, session: int) -> tuple[Session, SessionText]: ...
    def sessions_at(self, ids: Sequence[int]) -> list[tuple[Session, SessionText]]:
        """Return the sessions with these ids, in any order; those that do not exist are left out."""

    def sessions_like(self, prefix: str, limit: int = 20) -> list[Session]:
        """Return sessions whose native id, or its part after the last `/`, starts with this, in any state."""

    def neighbours(self, agent: str, native_id: str) -> tuple[str, str]:
        """Return the native ids of the agent's main sessions before and after this one in id order; "" for none."""

    def sessions_of(self, agent: str, native_id: str) -> list[Session]: ...
    def sessions_in(self, version: int) -> list[Session]: ...
    def turns(self, session: int, first: int = 0, last: int | None = None) -> list[Turn]: ...
    def steps(self, session: int, turn: int | None = None) -> list[Step]: ...
    def messages(self, session: int, first: int = 0, last: int | None = None) -> Iterator[MessageRow]:
        """Yield messages by seq, both ends included."""

    def messages_at(self, keys: Sequence[tuple[int, int]]) -> list[MessageRow]:
        """Return the messages with these sessions and seqs, in any order; those that do not exist are left out."""

    def project_of(self, version: int) -> str:
        """Return the repository that a version belongs to: of a pushed one its remote, else its first commit; "" if unknown."""

    def set_project_of(self, source: int, name: str) -> None:
        """Note the repository that a source file belongs to."""

    def entries_at(self, keys: Sequence[tuple[int, int]]) -> list[tuple[Session, SessionText, MessageRow | None]]:
        """Return session and message of these sessions and seqs, in one lookup; None for a message that does not exist."""

    def calls(self, session: int, turn: int | None = None) -> list[Call]: ...
    def work(self, session: int) -> list[tuple[int, str, int]]:
        """Return how many calls of which kind each turn made: (turn, kind, n)."""

    def artifacts(self, session: int) -> list[Artifact]: ...
    def edits_of_file(self, names: Sequence[str]) -> list[FoundEdit]:
        """Return all edits of files with one of these names, whatever their folder; upper and lower case are one."""

    def edits_of_session(self, session: int) -> list[FoundEdit]:
        """Return the edits of a session, in order."""

    def edited_paths(self, beginning: str) -> list[str]:
        """Return the paths of edits that begin so, each once; some hundred at most."""

    def edit_span(self) -> tuple[int, int] | None:
        """Return the time of the first and the last edit; None without any."""

    def result_seq(self, session: int, seq: int, idx: int) -> int | None:
        """Return the message that holds the result of a call."""

    def calls_answered(self, session: int, seq: int) -> list[Call]:
        """Return the calls whose result is in a message."""

    def line_hashes(self, lines: Sequence[str]) -> list[bytes]:
        """Return the hash that the edit index has for each line; that of a blank line is all zero."""

    def links(self, session: int) -> list[LinkRow]: ...
    def links_to(self, native_id: str) -> list[LinkRow]: ...
    def search(self, query: IndexQuery) -> list[IndexHit]:
        """Return a page of all matching entries, ordered by their own text alone.

        Examines every entry, however many: a reference for the contract tests and benchmarks. Searches of people and
        agents use `candidates`.
        """

    def candidates(self, query: IndexQuery, most: int = 0) -> IndexCandidates:
        """Return the best of the entries with the rarest words, about `most` (0 = all).

        `limit` and `offset` of the query are ignored.
        """

    def count_words(self, words: Sequence[str]) -> dict[str, int]:
        """Return the words that occur in the archive with the number of entries, counted up to a small bound."""

    def times(self, sessions: Sequence[int]) -> dict[int, tuple[int | None, int | None]]:
        """Return when sessions started and ended."""

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        """Return up to `most` indexed stems with this beginning; none where the engine cannot list them."""

    def problems(self, version: int | None = None, limit: int = 1000) -> list[ProblemRow]: ...
    def census(self, version: int | None = None) -> list[CensusRow]:
        """Return the counts of one version, or the sums over all current ones (with version 0)."""

    # --- analytics ---
    def stale_sessions(self, limit: int = 100) -> list[tuple[int, int]]:
        """Return the sessions whose counts are out of date, lowest id first, each with its number of calls."""

    def recount(self, sessions: Sequence[int]) -> None:
        """Count these sessions again and change the totals by the difference."""

    def check_rules(self) -> bool:
        """Whether the counts were made by the rules of this version. If not, the plane is reset."""

    def totals(self, table: str, subagents: bool = True, least: int = 1) -> dict[tuple[int | str, ...], list[int]]:
        """Return a table of `model.analytics.TALLIES`: key (without `subagent`) → counters, rows with n >= `least`."""

    def trails(self, scope: AnalyticsScope = EVERYTHING) -> Iterator[tuple[int, Trail]]:
        """Yield the tool use of sessions, lowest id first."""

    def usage(self, scope: AnalyticsScope = EVERYTHING) -> list[UsageRow]:
        """Return the tokens of sessions by quarter of an hour and model, with inherited ones marked."""

    def activity(self, scope: AnalyticsScope = EVERYTHING) -> list[ActivityRow]:
        """Return the turns and calls of sessions by quarter of an hour."""

    def reported(self, scope: AnalyticsScope = EVERYTHING) -> list[ReportedWork]:
        """Return what subagents did that are known only from the results of their parents' calls, each once."""

    def taken_back_turns(self, scope: AnalyticsScope = EVERYTHING) -> list[Turn]:
        """Return the turns that a person took back, without those that a fork repeats."""

    def plane_rows(self, table: PlaneTable) -> Iterator[tuple[Any, ...]]:
        """Yield all rows of one of `model.analytics.PLANE`, in order."""

    # --- kept ---
    #: Applied to the values of new kept rows, in capture mode `redacted`.
    mask: Callable[[str], str] | None

    def keep(self, row: KeptRow) -> None:
        """Insert or replace by (kind, agent, subject, key)."""

    def kept(self, kind: str = "", subject: str | None = None) -> list[KeptRow]:
        """Return the kept rows of a kind ("" = all), or about one subject."""

    def drop_kept(self, agent: str, subject: str, kinds: Sequence[str] = ()) -> None:
        """Delete the kept rows about a session, of some kinds or all, including rows without an agent."""

    def drop_lists(self, owner: str) -> None:
        """Delete the lists that a framework keeps for a session."""

    def delete_thread(self, thread: str) -> None:
        """Delete the checkpoints that a framework keeps for a session."""

    def drop_threads(self, matches: Callable[[bytes], bool]) -> int:
        """Delete the checkpoint threads with matching content; return how many."""

    def drop_list_items(self, matches: Callable[[bytes], bool]) -> int:
        """Delete the items and owners of lists with matching content; return how many."""

    def bury(self, rows: list[Tombstone]) -> None: ...
    def tombstones(self) -> list[Tombstone]: ...
    def add_hook_events(self, rows: Iterable[HookEvent]) -> int:
        """Add hook events that are new; return how many."""

    def hook_events(self, session: str = "") -> list[HookEvent]:
        """Return hook events by time, of one session by its native id, or all."""

    def last_hook_event(self, agent: str) -> int | None:
        """Return when an archived session of an agent last reported an event to the hook; None for never."""

    def unmatched_hook_calls(self, since: int = 0) -> dict[str, int]:
        """Return native id → number of calls since then that only a hook has seen."""

    def match_hook_events(self, sessions: Iterable[str]) -> None:
        """Match the hook events of these sessions that have no call yet with calls of the archive."""

    def drop_hook_events(self, sessions: Sequence[str]) -> None:
        """Delete the hook events of sessions."""

    # --- erasing ---
    def empty_file(self, source: int) -> None:
        """Delete the bytes and rows of a source file, but keep how far it was read."""

    def delete_file(self, source: int) -> None:
        """Delete a source file: all versions, chunks no other version uses, derived rows and sessions."""

    def erase_framework_data(self, data: FrameworkData) -> None:
        """Delete what a framework keeps: a thread of checkpoints, a list with its row, or one item."""

    def server_time(self) -> int | None:
        """Return the time of the database server in ms UTC; None without a server."""

    def scrub(self) -> None:
        """Remove deleted bytes from the database file, its log and its free pages."""


def open_store(url: str, create: bool = True, clock: Any = None, upgrade: bool = True, durable: bool = False) -> Store:
    """Open an archive: a path or sqlite:path, memory:, or postgresql://…; migrate it if it is older.

    Without `upgrade`, raise OlderArchive instead of migrating; a shared archive is never migrated here and raises
    MigrationNeeded. With `durable`, a commit is on disk when it returns;
    without it, a power failure (but no crash of the process) may lose the last ones.
    """
    if url.startswith(("postgresql:", "postgres:")):
        from everturn.store import postgres

        return postgres.open_postgres(url, create, clock or now, upgrade, durable)
    from everturn.store import sqlite

    return sqlite.open_sqlite(url, create, clock or now, durable, upgrade)


def migrate_store(url: str) -> Store:
    """Open an archive that must exist and migrate it, also if it is shared: `everturn admin migrate`."""
    if url.startswith(("postgresql:", "postgres:")):
        from everturn.store import postgres

        return postgres.open_postgres(url, create=False, upgrade_shared=True)
    return open_store(url, create=False)
