"""Paths: sequences of tools that agents follow more often than chance explains.

A path is reported if it is surprising in itself (`path_counts`), if its first and last tool are not a chance extension of
the shorter path without them, and if it is not merely a part of longer reported paths. The result is a list of habits, not
of every way to split one habit. Chance is estimated from a fair sample of the sessions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from msgspec import Struct

from everturn.analytics import counts
from everturn.analytics.counts import tools_of
from everturn.analytics.path_counts import (
    LEAST_SESSIONS,
    Crowd,
    PathCounts,
    Steps,
    ToolHabits,
    count_paths,
    habits,
    habits_of,
    is_surprising,
    next_by_chance,
)
from everturn.analytics.turns import REPEATED
from everturn.model.analytics import ARROW, EDGE, ToolPath
from everturn.store.contract import AnalyticsScope, Store

_CANDIDATES = 400


class ToolPathFinding(Struct, frozen=True):
    """A path worth knowing."""

    path: str  # `Read{2+} → Edit`: a step that is mostly repeated says so
    tools: tuple[str, ...]
    n: int
    sessions: int
    lift: float  # how many times more often than by chance
    by_chance: float  # how often it would be seen by chance
    position: float  # the batch of the turn it begins at, on average, from 1
    errors: int  # how often a call of it failed


class PositionInTurn(Struct, frozen=True):
    """Where in a turn a tool is used."""

    tool: str
    calls: int
    turns: int
    sessions: int
    position: float  # the batch of the turn, on average, from 1
    first: float  # share of the turns with it that begin with it
    last: float  # share of the turns with it that end with it
    parallel: float  # share of its calls that ran beside others


class Paths(Struct, frozen=True):
    """The answer: paths, those with the largest surplus over chance first, and what they were found in."""

    items: list[ToolPathFinding]
    sessions: int
    turns: int
    calls: int
    sampled: int  # sessions that chance was reckoned from


class PathChances:
    """How often paths would occur by chance: estimated from the sample, scaled to all sessions."""

    def __init__(self, seen: PathCounts) -> None:
        self.pooled: ToolHabits = habits(seen.steps, seen.windows)
        self._crowd = Crowd([habits_of(tools for _, tools in tools_of(trail)) for _, trail in seen.sample])
        self._together = Crowd([self.pooled])
        self._scale = seen.sessions / max(self._crowd.size, 1)

    def estimate(self, path: Steps) -> float:
        """Estimate with the habits of each session."""
        return self._scale * self._crowd.expect_count(path)

    def estimate_pooled(self, path: Steps) -> float:
        """Estimate as if all sessions were one."""
        return self._together.expect_count(path)


def find_paths(store: Store, scope: AnalyticsScope, top: int = 20, by_chance_too: bool = False) -> Paths:
    """Return the paths that occur more often than chance explains; or all, most frequent first."""
    seen = count_paths(store, scope)
    found = every_path(seen, top) if by_chance_too else judge_paths(seen)[:top]
    return Paths(found, seen.sessions, seen.turns, seen.calls, len(seen.sample))


def judge_paths(seen: PathCounts) -> list[ToolPathFinding]:
    """Return the surprising paths, those with the largest surplus over chance first."""
    chances = PathChances(seen)
    likely = {path: chances.estimate(path) for path in _find_likely(seen, chances)}
    likely = {path: chance for path, chance in likely.items() if is_surprising(seen.n[path], chance, seen.looked_at)}
    rows = seen.closer(likely)
    kept = {path: by_chance for path, by_chance in likely.items() if rows[path].sessions >= LEAST_SESSIONS}
    contained = _count_contained(kept, seen.n)
    whole = [
        path
        for path, by_chance in kept.items()
        if path not in contained or is_surprising(seen.n[path] - contained[path], by_chance, seen.looked_at)
    ]
    whole.sort(key=lambda path: (kept[path] - seen.n[path], path))
    return [_make_finding(rows[path], kept[path]) for path in whole]


def every_path(seen: PathCounts, top: int) -> list[ToolPathFinding]:
    """Return the most frequent paths, whether or not chance explains them."""
    frequent = sorted(seen.n, key=lambda path: (-seen.n[path], path))[:top]
    chances, rows = PathChances(seen), seen.closer(frequent)
    return [_make_finding(rows[path], chances.estimate(path)) for path in frequent]


def list_positions(store: Store, scope: AnalyticsScope, top: int = 20) -> list[PositionInTurn]:
    """Return the positions of tools in turns, most used tools first."""
    counts.catch_up(store)
    counted = counts.read_counts(store, scope, ("tool_total", "tool_pair"))
    first = {pair.second: pair.n for pair in counted.pairs("next") if pair.first == EDGE}
    last = {pair.first: pair.n for pair in counted.pairs("next") if pair.second == EDGE}
    rows = sorted(counted.tools(), key=lambda row: (-row.n, row.tool))[:top]
    return [
        PositionInTurn(
            row.tool, row.n, row.turns, row.sessions, round(1 + row.position / row.n, 2),
            round(first.get(row.tool, 0) / row.turns, 3), round(last.get(row.tool, 0) / row.turns, 3),
            round(row.parallel / row.n, 3),
        )
        for row in rows
    ]  # fmt: skip


def _find_likely(seen: PathCounts, chances: PathChances) -> list[Steps]:
    """Return candidates by cheap checks. Only these are examined further."""
    rough = {path: chances.estimate_pooled(path) for path in seen.n}
    likely = [path for path, n in seen.n.items() if is_surprising(n, rough[path], seen.looked_at)]
    likely.sort(key=lambda path: (rough[path] - seen.n[path], path))
    extending = (path for path in likely if _is_extension(path, seen, chances))
    return [path for path, _ in zip(extending, range(_CANDIDATES), strict=False)]


def _is_extension(path: Steps, seen: PathCounts, chances: PathChances) -> bool:
    """Whether both ends belong to the path: the shorter one would not meet that tool so often by chance."""
    if len(path) == 2:
        return True
    goes_on = seen.windows[len(path)] / max(seen.windows[len(path) - 1], 1)
    for shorter, beside, end in ((path[:-1], path[-2], path[-1]), (path[1:], path[1], path[0])):
        by_chance = seen.n.get(shorter, 0) * goes_on * next_by_chance(beside, end, chances.pooled)
        if not is_surprising(seen.n[path], by_chance, seen.looked_at):
            return False
    return True


def _count_contained(kept: Iterable[Steps], n: Mapping[Steps, int]) -> dict[Steps, int]:
    """Return how often each path was part of longer reported ones; paths of one length at the same position add up."""
    at: dict[tuple[Steps, int, int], int] = defaultdict(int)
    for path in kept:
        for length in range(2, len(path)):
            for start in range(len(path) - length + 1):
                at[path[start : start + length], len(path), start] += n[path]
    contained: dict[Steps, int] = {}
    for (part, _, _), times in at.items():
        contained[part] = max(contained.get(part, 0), times)
    return contained


def _make_finding(row: ToolPath, by_chance: float) -> ToolPathFinding:
    path = ARROW.join(
        tool + REPEATED * (repeated * 2 > row.n) for tool, repeated in zip(row.steps, row.repeated, strict=False)
    )
    lift = row.n / by_chance if by_chance else float(row.n)
    position = 1 + row.position / row.n
    return ToolPathFinding(
        path, row.steps, row.n, row.sessions, round(lift, 2), round(by_chance, 2), round(position, 2), row.errors
    )
