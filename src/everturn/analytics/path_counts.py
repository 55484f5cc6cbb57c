"""How often paths occur: observed, and expected by chance.

Observed counts come from the totals, or from the trails of a scope in two passes: the first only counts, with the steps
of a turn as a string of one letter each; the second gathers details of the few paths that matter.

Chance means that each session has its tools, their frequencies and the lengths of its turns, but their order is random.
Frequencies are those within a session: two tools that only one project has would otherwise seem to belong together. As
repeats are one step of a path, a tool never follows itself (quasi-independence).

`is_surprising` is strict on purpose: the bound on the probability (Chernoff, for a Poisson count) is divided by the
number of positions examined, and a small lift does not count however certain it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import log
from operator import mul

from msgspec import Struct

from everturn.analytics import counts
from everturn.analytics.counts import UNKNOWN_TOOL, FailureTally, failed_of
from everturn.model.analytics import INHERITED, LONGEST_PATH, ToolPath, Trail
from everturn.store.contract import AnalyticsScope, Store

#: The least lift, occurrences and sessions of a path that is reported.
LEAST_LIFT = 1.5
LEAST_SUPPORT = 5
LEAST_SESSIONS = 3
#: The probability that anything is reported of histories without order.
_FALSE_ALARM_RATE = 0.01
_ROUNDS = 8


class ToolHabits(Struct, frozen=True):
    """The frequencies of tools in one session or in all together, from which chance is estimated."""

    shares: dict[str, float]  # by tool: its share of all steps
    weights: dict[str, float]  # by tool, sum 1: the probability that it comes next if it may follow itself
    windows: tuple[int, ...]  # number of positions for a path of 0, 1, 2… steps


def habits(steps: Mapping[str, int], windows: Sequence[int]) -> ToolHabits:
    """Compute habits from the steps of each tool and the number of positions for a path of each length."""
    total = sum(steps.values()) or 1
    shares = {tool: n / total for tool, n in steps.items()}
    return ToolHabits(shares, _solve_weights(shares), tuple(windows))


def habits_of(turns: Iterable[Sequence[str]]) -> ToolHabits:
    """Compute habits from the tools of a session's turns, in order."""
    steps: Counter[str] = Counter()
    windows = [0] * (LONGEST_PATH + 1)
    for tools in turns:
        run = [tool for tool, _ in groupby(tools)]
        steps.update(run)
        for length in range(1, min(len(run), LONGEST_PATH) + 1):
            windows[length] += len(run) - length + 1
    return habits(steps, windows)


class Crowd:
    """Many sessions, in columns: chance in each of them is computed at once."""

    def __init__(self, sessions: Sequence[ToolHabits]) -> None:
        self.size = len(sessions)
        self._windows = [[one.windows[length] for one in sessions] for length in range(LONGEST_PATH + 1)]
        self._first: dict[str, list[float]] = {}
        self._middle: dict[str, list[float]] = {}
        self._last: dict[str, list[float]] = {}
        for number, one in enumerate(sessions):
            for tool, weight in one.weights.items():
                goes_on = 1 / (1 - weight) if weight < 1 else 0.0  # the following tools share what this one leaves
                self._tool_column(self._first, tool)[number] = one.shares[tool] * goes_on
                self._tool_column(self._middle, tool)[number] = weight * goes_on
                self._tool_column(self._last, tool)[number] = weight

    def expect_count(self, path: Sequence[str]) -> float:
        """Return how often the path would occur by chance in all sessions together."""
        if not all(tool in self._last for tool in path):
            return 0.0
        chance: Iterable[float] = map(mul, self._windows[len(path)], self._first[path[0]])
        for tool in path[1:-1]:
            chance = map(mul, chance, self._middle[tool])
        return float(sum(map(mul, chance, self._last[path[-1]])))

    def _tool_column(self, columns: dict[str, list[float]], tool: str) -> list[float]:
        return columns.get(tool) or columns.setdefault(tool, [0.0] * self.size)


def next_by_chance(before: str, tool: str, of: ToolHabits) -> float:
    """Return the probability that `tool` follows `before`."""
    rest = 1 - of.weights.get(before, 0.0)
    return of.weights.get(tool, 0.0) / rest if rest > 0 else 0.0


def is_surprising(seen: float, by_chance: float, looked_at: int) -> bool:
    """Whether `seen` occurrences in `looked_at` positions are more than chance explains."""
    if seen < LEAST_SUPPORT or seen < LEAST_LIFT * by_chance:
        return False
    return seen * log(seen / max(by_chance, 1e-9)) - seen + by_chance > log(max(looked_at, 1) / _FALSE_ALARM_RATE)


def _solve_weights(shares: Mapping[str, float]) -> dict[str, float]:
    """Solve for weights w with w(1 - w) in proportion to the shares: the share of a tool that could follow itself.

    A few iterations are enough, as only ratios matter. A tool with half of all steps or more is kept from absorbing the rest.
    """
    weights = dict(shares)
    for _ in range(_ROUNDS if len(shares) > 2 else 0):
        grown = {tool: share / max(1 - weights[tool], 0.05) for tool, share in shares.items()}
        total = sum(grown.values())
        weights = {tool: weight / total for tool, weight in grown.items()}
    return weights


#: The number of sessions that chance is estimated from; at most twice as many are held.
SAMPLE = 500
_RARE_SHARE = 20_000  # a path rarer than one in so many positions is ignored
_TABLES = ("plane_total", "tool_path", "tool_total", "tool_failure")

Steps = tuple[str, ...]


class PathCounts(Struct, frozen=True):
    n: dict[Steps, int]  # paths of two steps or more that are not too rare
    steps: dict[str, int]  # by tool
    windows: tuple[int, ...]  # number of positions for a path of 0, 1, 2… steps
    sessions: int  # that used a tool
    turns: int
    calls: int
    working: frozenset[str]  # tools that went well at least once
    missing: dict[str, tuple[int, int]]  # tools that do not exist: calls, sessions
    sample: list[tuple[int, Trail]]
    closer: Callable[[Collection[Steps]], dict[Steps, ToolPath]]  # more about some paths

    @property
    def looked_at(self) -> int:
        """The number of positions in which a path could occur."""
        return sum(self.windows[2:])


def count_paths(store: Store, scope: AnalyticsScope) -> PathCounts:
    """Count from the totals if the scope does not limit, else from the trails."""
    counts.catch_up(store)
    return _count_from_totals(store, scope) if scope.everything else _count_from_trails(store, scope)


class Sample:
    """Keeps every trail, then every second, every fourth… so that at most twice SAMPLE are held."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, Trail]] = []
        self._stride = 1
        self._seen = 0

    def add(self, session: int, trail: Trail) -> None:
        if not trail.tools:
            return
        if self._seen % self._stride == 0:
            self.kept.append((session, trail))
            if len(self.kept) > 2 * SAMPLE:
                self.kept = self.kept[::2]
                self._stride *= 2
        self._seen += 1


def _count_from_totals(store: Store, scope: AnalyticsScope) -> PathCounts:
    size = counts.read_counts(store, scope, ("plane_total",))
    counted = counts.read_counts(store, scope, _TABLES, _least_support(size.total("path2")))
    rows = {row.steps: row for row in counted.paths()}
    sample = Sample()
    for session, trail in store.trails(scope):
        sample.add(session, trail)
    missing = {tool: found for (tool, error), found in counted.failures().items() if error == UNKNOWN_TOOL}
    return PathCounts(
        {steps: row.n for steps, row in rows.items() if len(steps) > 1},
        {steps[0]: row.n for steps, row in rows.items() if len(steps) == 1},
        (0, *(size.total(f"path{length}") for length in range(1, LONGEST_PATH + 1))),
        size.total("sessions"), size.total("turns"), size.total("calls"),
        frozenset(row.tool for row in counted.tools() if row.n > row.errors),
        missing, sample.kept, lambda paths: {path: rows[path] for path in paths},
    )  # fmt: skip


# --- a scope of sessions ---
class _ToolLetters(dict[str, str]):
    """Assigns a letter to each tool as it appears."""

    def __missing__(self, tool: str) -> str:
        letter = self[tool] = chr(0x100 + len(self))
        return letter

    def tools(self, letters: str, names: list[str]) -> Steps:
        return tuple(names[ord(letter) - 0x100] for letter in letters)


class _LetterTurn(Struct):
    """The steps of a turn as letters, and from which of them on they are the session's own."""

    steps: str
    own: int
    at: list[int]  # the start of each step in the trail, then the end of the turn


def _count_from_trails(store: Store, scope: AnalyticsScope) -> PathCounts:
    letters, sample, failed = _ToolLetters(), Sample(), FailureTally()
    n: list[Counter[str]] = [Counter() for _ in range(LONGEST_PATH + 1)]
    sessions = turns = calls = 0
    for session, trail in store.trails(scope):
        sample.add(session, trail)
        failed.add(trail)
        of_session = list(_letter_turns(trail, letters))
        sessions += bool(of_session)
        turns += len(of_session)
        calls += sum(not outcome & INHERITED for outcome in trail.outcomes)
        for length in range(1, LONGEST_PATH + 1):
            n[length].update(_find_windows(of_session, length))
    names = list(letters)
    windows = tuple(counter.total() for counter in n)
    least = _least_support(windows[2])
    seen = {letters.tools(path, names): times for counter in n for path, times in counter.items() if times >= least}
    steps = {path[0]: times for path, times in seen.items() if len(path) == 1}
    return PathCounts(
        {path: times for path, times in seen.items() if len(path) > 1}, steps, windows, sessions, turns, calls,
        failed.working(), failed.missing(), sample.kept, lambda paths: _count_details(store, scope, letters, paths),
    )  # fmt: skip


def _letter_turns(trail: Trail, letters: _ToolLetters) -> Iterator[_LetterTurn]:
    names = [letters[name] for name in trail.names]
    start, tools, outcomes = 0, trail.tools, trail.outcomes
    for _, group in groupby(trail.turns):
        end = start + sum(1 for _ in group)
        at = [number for number in range(start, end) if number == start or tools[number] != tools[number - 1]]
        own = next((step for step, number in enumerate(at) if not outcomes[number] & INHERITED), len(at))
        yield _LetterTurn("".join([names[tools[number]] for number in at]), own, [*at, end])
        start = end


def _find_windows(turns: Iterable[_LetterTurn], length: int) -> Iterator[str]:
    """Yield every path of a length whose last step is the session's own."""
    for turn in turns:
        steps = turn.steps
        for start in range(max(turn.own - length + 1, 0), len(steps) - length + 1):
            yield steps[start : start + length]


def _count_details(
    store: Store, scope: AnalyticsScope, letters: _ToolLetters, paths: Collection[Steps]
) -> dict[Steps, ToolPath]:
    by_letters = {"".join(letters[tool] for tool in path): path for path in paths}
    found: dict[str, _PathDetail] = defaultdict(_PathDetail)
    lengths = {len(path) for path in paths}
    for _, trail in store.trails(scope):
        met: set[str] = set()
        for turn in _letter_turns(trail, letters):
            in_turn = {window for length in lengths for window in _find_windows([turn], length) if window in by_letters}
            for window in in_turn:
                found[window].add(trail, turn, window, window not in met)
            met |= in_turn
    return {path: found[window].row(path) for window, path in by_letters.items()}


class _PathDetail:
    def __init__(self) -> None:
        self.n = self.sessions = self.turns = self.position = self.errors = 0
        self.repeated = [0] * LONGEST_PATH

    def add(self, trail: Trail, turn: _LetterTurn, window: str, is_new: bool) -> None:
        self.sessions += is_new
        self.turns += 1
        at, length = turn.at, len(window)
        start = turn.steps.find(window, max(turn.own - length + 1, 0))
        while start >= 0:
            self.n += 1
            self.position += trail.batches[at[start]]
            self.errors += any(map(failed_of, trail.outcomes[at[start] : at[start + length]]))
            for step in range(length):
                self.repeated[step] += at[start + step + 1] - at[start + step] > 1
            start = turn.steps.find(window, start + 1)

    def row(self, path: Steps) -> ToolPath:
        return ToolPath(
            path, self.n, self.sessions, self.turns, self.position, self.errors, tuple(self.repeated[: len(path)])
        )


def _least_support(pairs: int) -> int:
    return max(LEAST_SUPPORT, pairs // _RARE_SHARE)
