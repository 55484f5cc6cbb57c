"""The counts of the analytics plane: brought up to date, and read for everything or for a scope of sessions.

The totals of all sessions are kept in tables; those of a scope are counted from the trails of its sessions. Both give the
same numbers. `catch_up`, which every question calls first, counts the sessions that changed; its work follows these, not
the size of the archive.

Trails are read turn by turn. `TrailHandle` names a turn of the archive where something was seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from everturn.derive.trails import ALL, TallyBuilder
from everturn.errors import UnknownSession
from everturn.model.analytics import ARROW, CLASS, INHERITED, ToolPair, ToolPath, ToolTotal, Trail, bucket_start
from everturn.model.archive import Session
from everturn.model.vocabulary import ERROR_CLASSES
from everturn.store.contract import AnalyticsScope, Store

#: Calls counted in one transaction, and the most sessions.
_CALLS, _SESSIONS = 20_000, 500
_MOST_COUNTED = 100_000  # the most sessions counted in advance for the progress

Rows = dict[tuple[int | str, ...], list[int]]


class AnalyticsCounts(Struct, frozen=True):
    """Counters of the requested tables: table → key (without `subagent`) → counters."""

    tables: dict[str, Rows]

    def tools(self) -> list[ToolTotal]:
        """Return the rows of `tool_total`, most used first."""
        rows = [ToolTotal(str(key[0]), *row) for key, row in self.tables["tool_total"].items()]
        return sorted(rows, key=lambda row: (-row.n, row.tool))

    def pairs(self, relation: str = "") -> list[ToolPair]:
        """Return the rows of `tool_pair`, most frequent first."""
        found = self.tables["tool_pair"].items()
        rows = [_read_pair(key, row) for key, row in found if relation in ("", key[0])]
        return sorted(rows, key=lambda row: (-row.n, row.relation, row.first, row.second))

    def paths(self, length: int = 0) -> list[ToolPath]:
        """Return the rows of `tool_path` of one length or all, most frequent first."""
        found = self.tables["tool_path"].items()
        rows = [_read_path(str(key[1]), int(key[0]), row) for key, row in found if length in (0, key[0])]
        return sorted(rows, key=lambda row: (-row.n, row.steps))

    def times(self, tool: str) -> dict[int, int]:
        """Return a tool's histogram from `tool_duration`: bucket → n."""
        return {int(key[1]): row[0] for key, row in self.tables["tool_duration"].items() if key[0] == tool}

    def positions(self, tool: str) -> dict[int, tuple[int, int]]:
        """Return a tool's positions in the turn from `tool_position`: number of the batch → (n, errors)."""
        found = self.tables["tool_position"].items()
        return {int(key[1]): (row[0], row[1]) for key, row in sorted(found) if key[0] == tool}

    def failures(self, tool: str = "") -> dict[tuple[str, str], tuple[int, int]]:
        """Return the rows of `tool_failure`: (tool, error class) → (n, sessions)."""
        found = self.tables["tool_failure"].items()
        return {(str(key[0]), str(key[1])): (row[0], row[1]) for key, row in sorted(found) if tool in ("", key[0])}

    def lengths(self) -> dict[int, tuple[int, int]]:
        """Return the rows of `turn_length`: number of calls → (turns, turns with a failed call)."""
        return {int(key[0]): (row[0], row[1]) for key, row in sorted(self.tables["turn_length"].items())}

    def total(self, what: str) -> int:
        """Return a row of `plane_total`: sessions turns calls errors batches parallel path1…path6."""
        return self.tables["plane_total"].get((what,), [0])[0]


def catch_up(store: Store, progress: Callable[[int, int], None] = lambda done, total: None) -> int:
    """Count every session that changed since it was counted, and return their number.

    `progress` gets the sessions done and their total. Each portion is a transaction of its own, so it can stop anywhere. Raises
    Busy if another process holds the archive.
    """
    if not store.stale_sessions(1) and store.check_rules():
        return 0
    store.check_rules()
    done, total = 0, len(store.stale_sessions(_MOST_COUNTED))
    while portion := _take_portion(store.stale_sessions(_SESSIONS)):
        with store.write():
            store.recount(portion)
        done += len(portion)
        progress(done, max(done, total))
    return done


def read_counts(store: Store, scope: AnalyticsScope, tables: Sequence[str] = ALL, least: int = 1) -> AnalyticsCounts:
    """Return tables of TALLIES over a scope, without rows of `tool_path` that occur fewer than `least` times."""
    if scope.everything:
        limits = {"tool_path": least}
        return AnalyticsCounts({name: store.totals(name, scope.subagents, limits.get(name, 1)) for name in tables})
    return count_trails((trail for _, trail in store.trails(scope)), tables, least)


def count_trails(given: Iterable[Trail], tables: Sequence[str] = ALL, least: int = 1) -> AnalyticsCounts:
    """Return the same tables over given trails."""
    builder = TallyBuilder(tables)
    for trail in given:
        builder.add(trail)
    found = builder.tally(0, least)
    return AnalyticsCounts({name: {key[1:]: row for key, row in rows.items()} for name, rows in found.items()})


def percentile(times: dict[int, int], share: float) -> int | None:
    """Return the duration that this share of the calls does not exceed: exact below 64 ms, then up to 3.2 % too low."""
    target, seen = share * sum(times.values()), 0
    for bucket, n in sorted(times.items()):
        seen += n
        if seen >= target:
            return bucket_start(bucket)
    return None


def _take_portion(stale: list[tuple[int, int]]) -> list[int]:
    """Return the sessions of one transaction, at least one."""
    portion, calls = list[int](), 0
    for session, n in stale:
        calls += n
        if portion and calls > _CALLS:
            break
        portion.append(session)
    return portion


def _read_path(path: str, length: int, row: list[int]) -> ToolPath:
    n, sessions, turns, position, errors = row[:5]
    return ToolPath(tuple(path.split(ARROW)), n, sessions, turns, position, errors, tuple(row[5 : 5 + length]))


def _read_pair(key: tuple[int | str, ...], row: list[int]) -> ToolPair:
    relation, first, second = map(str, key)
    return ToolPair(relation, first, second, *row)


UNKNOWN_TOOL = "unknown_tool"


class TrailHandle(Struct, frozen=True):
    """Where to look: `everturn show SESSION --turn TURN`."""

    session: str  # native id
    turn: int  # counted from 1
    agent: str = ""


def tools_of(trail: Trail) -> Iterator[tuple[int, list[str]]]:
    """Yield the tools of each turn, in order, without the calls that a fork repeats."""
    names = trail.names
    rows = zip(trail.turns, trail.tools, trail.outcomes, strict=True)
    own = ((turn, names[tool]) for turn, tool, outcome in rows if not outcome & INHERITED)
    for turn, calls in groupby(own, key=lambda row: row[0]):
        yield turn, [tool for _, tool in calls]


def failed_of(outcome: int) -> str:
    """Return the error class of a call's outcome; "" if it did not fail."""
    return ERROR_CLASSES[outcome & CLASS]


class FailureTally:
    """Counts how calls ended, by tool, over any number of trails."""

    def __init__(self) -> None:
        self._worked: set[str] = set()
        self._missing: dict[str, tuple[int, int]] = {}

    def add(self, trail: Trail) -> None:
        """Add the calls of one session, without those that a fork repeats."""
        for (tool, outcome), n in Counter(zip(trail.tools, trail.outcomes, strict=True)).items():
            if outcome & INHERITED:
                continue
            error, name = failed_of(outcome), trail.names[tool]
            if not error:
                self._worked.add(name)
            elif error == UNKNOWN_TOOL:
                before, sessions = self._missing.get(name, (0, 0))
                self._missing[name] = before + n, sessions + 1

    def working(self) -> frozenset[str]:
        """Return the tools that succeeded at least once."""
        return frozenset(self._worked)

    def missing(self) -> dict[str, tuple[int, int]]:
        """Return the tools that were reported not to exist: calls and sessions."""
        return dict(self._missing)


def family_ids(store: Store, session: Session, subagents: bool) -> tuple[int, ...]:
    """Return the ids of all versions of a session, as an older one may own what newer ones repeat, and of its subagents."""
    names, found = [(session.agent, session.native_id)], dict[int, None]()
    for agent, name in names:
        versions = store.sessions_of(agent, name)
        found.update(dict.fromkeys(one.id for one in versions))
        links = store.links_to(name) if subagents else []
        for child in (store.session(link.session)[0] for link in links if link.relation == "subagent_of"):
            if child.agent == agent and (agent, child.native_id) not in names:
                names.append((agent, child.native_id))
    return tuple(found)


def handles(store: Store, turns: Iterable[tuple[int, int]]) -> tuple[TrailHandle, ...]:
    """Return (session, turn) pairs as handles that people can look up."""
    return tuple(handle for session, turn in turns if (handle := _handle(store, session, turn)) is not None)


def find_examples(
    trails: Iterable[tuple[int, Trail]], fits: Callable[[list[str]], bool], needs: Iterable[str], most: int = 3
) -> list[tuple[int, int]]:
    """Return the first (session, turn) whose tools fit, one per session. Only trails with all needed tools are read."""
    needed = set(needs)
    found: list[tuple[int, int]] = []
    for session, trail in trails:
        if len(found) >= most:
            break
        if needed <= set(trail.names):
            found += [(session, turn) for turn, tools in tools_of(trail) if fits(tools)][:1]
    return found


def _handle(store: Store, session: int, turn: int) -> TrailHandle | None:
    try:
        row = store.session(session)[0]
    except UnknownSession:  # forgotten in the meantime
        return None
    return TrailHandle(row.native_id, turn + 1, row.agent)
