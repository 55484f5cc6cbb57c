"""One tool, or all that a name with wildcards means: how often, where in a turn, next to what, how long, how it fails.

The answer comes from the totals of the plane. The numbers of several tools are summed; the tools before and after them may
be one of them again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import compress, islice
from math import sqrt

from msgspec import Struct

from everturn.analytics import counts
from everturn.analytics.counts import AnalyticsCounts
from everturn.analytics.turns import matches_name
from everturn.model.analytics import EDGE, INHERITED, ToolPair, Trail
from everturn.store.contract import AnalyticsScope, Store

_LEAST_PAIRS = 20  # pairs below which nothing is said about them
TABLES = ("tool_total", "tool_position", "tool_duration", "tool_failure", "tool_pair")


class ToolNeighbour(Struct, frozen=True):
    """A tool that stands before, after or beside the one asked about; `tool` is empty at the edge of a turn."""

    tool: str
    n: int
    share: float
    errors: int  # how often the later one failed


class PositionCount(Struct, frozen=True):
    """Calls in the same batch of their turns."""

    position: int  # counted from 1; the last one stands for all later ones too
    n: int
    errors: int
    error_rate: float


class FailureGroup(Struct, frozen=True):
    """Calls that failed in the same way."""

    error_class: str
    n: int
    share: float  # of all that failed


class ParallelUse(Struct, frozen=True):
    """Pairs of calls of one tool in one batch: do they fail more often than calls of it do anyway?"""

    pairs: int
    failing: int  # pairs with a failed call
    rate: float
    expected: float  # rate for calls that fail independently of each other, as often as all calls of the tool
    verdict: str  # too few | as expected | fail more often


class Inspection(Struct, frozen=True):
    """The facts known about each tool."""

    tools: tuple[str, ...]
    n: int
    share: float  # of all calls
    sessions: int  # with several tools: the most that any of them has
    turns: int
    errors: int
    error_rate: float
    open: int  # calls without a result
    retries: int  # calls that try a failed one again
    parallel: float  # share of the calls that ran beside others
    position: float  # the batch of the turn, on average, from 1
    p50_ms: int | None
    p95_ms: int | None
    timed: int  # calls whose duration is known
    before: list[ToolNeighbour]
    after: list[ToolNeighbour]
    beside: list[ToolNeighbour]  # in one batch with it; the tool itself when it was called twice in one batch
    after_failure: list[ToolNeighbour]  # what was tried next when it failed
    positions: list[PositionCount]
    failures: list[FailureGroup]
    repeated: ParallelUse  # calls of one tool beside each other


def inspect_tools(store: Store, scope: AnalyticsScope, wanted: str) -> Inspection | None:
    """Inspect the tools that a name means; None if there are none."""
    counts.catch_up(store)
    tools = known_tools(store, scope, wanted)
    if not tools:
        return None
    if scope.everything:
        counted = counts.read_counts(store, scope, TABLES)
        return inspect_tool(counted, tools, sum(row.n for row in counted.tools()))
    around = _TurnsWithTools(store.trails(scope), tools)
    counted = counts.count_trails(around, TABLES)
    return inspect_tool(counted, tools, around.calls)


def similar_tools(store: Store, scope: AnalyticsScope, name: str) -> list[str]:
    """Return tools that may have been meant."""
    from difflib import get_close_matches

    by_name: dict[str, list[str]] = {}  # some agents have tools whose names differ only in case
    for tool in sorted(_recorded_tools(store, scope)):
        by_name.setdefault(tool.casefold(), []).append(tool)
    found = (tool for name in get_close_matches(name.casefold(), by_name, 3, 0.5) for tool in by_name[name])
    return list(islice(found, 3))


def known_tools(store: Store, scope: AnalyticsScope, name: str) -> set[str]:
    """Return the called tools that a name means: the one of exactly that name, else all that fit it as a pattern."""
    tools = _recorded_tools(store, scope)
    return {name} & tools or {tool for tool in tools if matches_name(name, tool)}


def inspect_tool(counted: AnalyticsCounts, tools: set[str], calls: int) -> Inspection:
    """Sum the numbers of these tools. `calls` is the number of calls of all tools."""
    rows = [row for row in counted.tools() if row.tool in tools]
    n, errors = sum(row.n for row in rows), sum(row.errors for row in rows)
    times = _histogram(counted, tools)
    following = counted.pairs("next")
    return Inspection(
        tools=tuple(row.tool for row in sorted(rows, key=lambda row: (-row.n, row.tool))),
        n=n,
        share=_share(n, calls),
        sessions=max(row.sessions for row in rows),
        turns=max(row.turns for row in rows),
        errors=errors,
        error_rate=_share(errors, n),
        open=sum(row.open for row in rows),
        retries=sum(row.retries for row in rows),
        parallel=_share(sum(row.parallel for row in rows), n),
        position=round(1 + sum(row.position for row in rows) / max(n, 1), 2),
        p50_ms=counts.percentile(times, 0.5),
        p95_ms=counts.percentile(times, 0.95),
        timed=sum(row.timed for row in rows),
        before=_count_neighbours((pair.first, pair) for pair in following if pair.second in tools),
        after=_count_neighbours((pair.second, pair) for pair in following if pair.first in tools),
        beside=_count_neighbours(_find_others(counted.pairs("parallel"), tools)),
        after_failure=_count_neighbours(
            (pair.second, pair) for pair in counted.pairs("recovery") if pair.first in tools
        ),
        positions=_positions(counted, tools),
        failures=_failures(counted, tools),
        repeated=parallel_use(counted, tools),
    )


def parallel_use(counted: AnalyticsCounts, tools: set[str]) -> ParallelUse:
    """Say whether calling one tool several times at once is a sign of confusion: whether such calls fail more often."""
    same = [pair for pair in counted.pairs("parallel") if pair.first == pair.second and pair.first in tools]
    pairs, failing = sum(pair.n for pair in same), sum(pair.errors for pair in same)
    rates = {row.tool: row.errors / row.n for row in counted.tools() if row.n}
    expected = sum(pair.n * (1 - (1 - rates[pair.first]) ** 2) for pair in same) / pairs if pairs else 0.0
    verdict = "too few" if pairs < _LEAST_PAIRS else "as expected"
    if pairs >= _LEAST_PAIRS and failing / pairs > expected + 2 * sqrt(max(expected * (1 - expected), 1e-9) / pairs):
        verdict = "fail more often"
    return ParallelUse(pairs, failing, _share(failing, pairs), round(expected, 4), verdict)


def _recorded_tools(store: Store, scope: AnalyticsScope) -> set[str]:
    if scope.everything:
        return {row.tool for row in counts.read_counts(store, scope, ("tool_total",)).tools()}
    return {tool for _, trail in store.trails(scope) for tool in trail.names}


class _TurnsWithTools:
    """Trails reduced to the turns that use certain tools: these hold all that the answer needs."""

    def __init__(self, trails: Iterable[tuple[int, Trail]], tools: set[str]) -> None:
        self._trails, self._tools = trails, tools
        self.calls = 0  # of all turns read, each once

    def __iter__(self) -> Iterator[Trail]:
        for _, trail in self._trails:
            self.calls += sum(outcome < INHERITED for outcome in trail.outcomes)
            numbers = {number for number, name in enumerate(trail.names) if name in self._tools}
            if numbers:
                turns = {turn for turn, tool in zip(trail.turns, trail.tools, strict=True) if tool in numbers}
                which = [turn in turns for turn in trail.turns]
                columns = (trail.turns, trail.tools, trail.batches, trail.outcomes, trail.durations)
                yield Trail(trail.names, *(list(compress(column, which)) for column in columns))


def _count_neighbours(pairs: Iterable[tuple[str, ToolPair]]) -> list[ToolNeighbour]:
    n: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for tool, pair in pairs:
        n[tool] += pair.n
        errors[tool] += pair.errors
    total = sum(n.values())
    return [ToolNeighbour(tool, n[tool], _share(n[tool], total), errors[tool]) for tool in _sort_by_count(n)]


def _find_others(pairs: Iterable[ToolPair], tools: set[str]) -> Iterable[tuple[str, ToolPair]]:
    """Yield the other tool of each pair. A pair of two of these tools is yielded once."""
    for pair in pairs:
        if pair.first in tools:
            yield pair.second, pair
        elif pair.second in tools:
            yield pair.first, pair


def _histogram(counted: AnalyticsCounts, tools: set[str]) -> dict[int, int]:
    times: Counter[int] = Counter()
    for tool in tools:
        times.update(counted.times(tool))
    return times


def _positions(counted: AnalyticsCounts, tools: set[str]) -> list[PositionCount]:
    n: Counter[int] = Counter()
    errors: Counter[int] = Counter()
    for tool in tools:
        for position, (calls, failed) in counted.positions(tool).items():
            n[position] += calls
            errors[position] += failed
    return [PositionCount(at + 1, n[at], errors[at], _share(errors[at], n[at])) for at in sorted(n)]


def _failures(counted: AnalyticsCounts, tools: set[str]) -> list[FailureGroup]:
    n: Counter[str] = Counter()
    for (tool, error_class), (failed, _) in counted.failures().items():
        if tool in tools:
            n[error_class] += failed
    total = sum(n.values())
    return [FailureGroup(name, n[name], _share(n[name], total)) for name in _sort_by_count(n)]


def _sort_by_count(n: Mapping[str, int]) -> list[str]:
    return sorted(n, key=lambda name: (-n[name], name == EDGE, name))


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0
