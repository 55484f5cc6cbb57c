"""How often paths were seen: from the totals, or counted anew for a choice of sessions.

Counting anew is done in two passes over the trails, so that a million calls take seconds: the first only counts, with a
turn's steps as a string of one letter each; the second looks closer at the few paths that are worth it. A fair sample of
the trails is kept on the way.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import groupby

from msgspec import Struct

from everturn.analyse import plane
from everturn.analyse.chance import LEAST_SUPPORT
from everturn.analyse.plane import AnalyticsScope
from everturn.analyse.tracks import UNKNOWN_TOOL, FailureTally, failed_of
from everturn.model.analytics import INHERITED, LONGEST_PATH, ToolPath, Trail
from everturn.store import Store

#: Sessions that chance is reckoned from, at most twice as many.
SAMPLE = 500
_RARE_SHARE = 20_000  # what is seen less than once in so many places is not looked at
_TABLES = ("plane_total", "tool_path", "tool_total", "tool_failure")

Steps = tuple[str, ...]


class PathCounts(Struct, frozen=True):
    """What was seen in a scope."""

    n: dict[Steps, int]  # paths of two steps or more that are not too rare
    steps: dict[str, int]  # by tool
    windows: tuple[int, ...]  # how many places there are for a path of 0, 1, 2… steps
    sessions: int  # that used a tool
    turns: int
    calls: int
    working: frozenset[str]  # tools that went well at least once
    missing: dict[str, tuple[int, int]]  # tools that do not exist: calls, sessions
    sample: list[tuple[int, Trail]]
    closer: Callable[[Collection[Steps]], dict[Steps, ToolPath]]  # more about some paths

    @property
    def looked_at(self) -> int:
        """In how many places a path could have been seen."""
        return sum(self.windows[2:])


def count_paths(store: Store, scope: AnalyticsScope) -> PathCounts:
    """From the totals where the scope does not limit, else from the trails."""
    plane.catch_up(store)
    return _count_from_totals(store, scope) if scope.everything else _count_from_trails(store, scope)


class Sample:
    """Every trail, then every second, every fourth… so that never more than twice SAMPLE are held."""

    def __init__(self) -> None:
        self.kept: list[tuple[int, Trail]] = []
        self._stride = 1
        self._seen = 0

    def add(self, session: int, trail: Trail) -> None:
        """The next one."""
        if not trail.tools:
            return
        if self._seen % self._stride == 0:
            self.kept.append((session, trail))
            if len(self.kept) > 2 * SAMPLE:
                self.kept = self.kept[::2]
                self._stride *= 2
        self._seen += 1


def _count_from_totals(store: Store, scope: AnalyticsScope) -> PathCounts:
    size = plane.read_counts(store, scope, ("plane_total",))
    counted = plane.read_counts(store, scope, _TABLES, _least_support(size.total("path2")))
    rows = {row.steps: row for row in counted.paths()}
    sample = Sample()
    for session, trail in plane.trails(store, scope):
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


# a choice of sessions -------------------------------------------------------------------------------------------------
class _ToolLetters(dict[str, str]):
    """A letter for each tool, given out as they come."""

    def __missing__(self, tool: str) -> str:
        letter = self[tool] = chr(0x100 + len(self))
        return letter

    def tools(self, letters: str, names: list[str]) -> Steps:
        return tuple(names[ord(letter) - 0x100] for letter in letters)


class _LetterTurn(Struct):
    """The steps of a turn as letters, and from which of them on they are the session's own."""

    steps: str
    own: int
    at: list[int]  # where each step begins in the trail, and behind them where the turn ends


def _count_from_trails(store: Store, scope: AnalyticsScope) -> PathCounts:
    letters, sample, failed = _ToolLetters(), Sample(), FailureTally()
    n: list[Counter[str]] = [Counter() for _ in range(LONGEST_PATH + 1)]
    sessions = turns = calls = 0
    for session, trail in plane.trails(store, scope):
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
    """Every path of that length; one counts where its last step is the session's own."""
    for turn in turns:
        steps = turn.steps
        for start in range(max(turn.own - length + 1, 0), len(steps) - length + 1):
            yield steps[start : start + length]


def _count_details(
    store: Store, scope: AnalyticsScope, letters: _ToolLetters, paths: Collection[Steps]
) -> dict[Steps, ToolPath]:
    wanted = {"".join(letters[tool] for tool in path): path for path in paths}
    found: dict[str, _PathDetail] = defaultdict(_PathDetail)
    lengths = {len(path) for path in paths}
    for _, trail in plane.trails(store, scope):
        met: set[str] = set()
        for turn in _letter_turns(trail, letters):
            in_turn = {window for length in lengths for window in _find_windows([turn], length) if window in wanted}
            for window in in_turn:
                found[window].add(trail, turn, window, window not in met)
            met |= in_turn
    return {path: found[window].row(path) for window, path in wanted.items()}


class _PathDetail:
    """What is gathered of one path."""

    def __init__(self) -> None:
        self.n = self.sessions = self.turns = self.position = self.errors = 0
        self.repeated = [0] * LONGEST_PATH

    def add(self, trail: Trail, turn: _LetterTurn, window: str, is_new: bool) -> None:
        """All times it stands in a turn."""
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
