"""How often a path would be seen by chance, and whether it was seen so much more often that chance is no explanation.

Chance means: each session has the tools it has, as often as it has them, and turns as long as they are, but their order
says nothing. Frequencies are those within a session, never of all sessions together: two tools that only one project has
would otherwise seem to belong together. As repeats are one step of a path, a tool never follows itself; the chance of the
next one is spread over the others (quasi-independence).

`is_surprising` is strict on purpose: the bound on the probability (Chernoff, for a Poisson count) is divided by the number
of places looked at, and a small lift does not count however sure it is. In shuffled histories nothing is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from math import log
from operator import mul

from msgspec import Struct

from everturn.model.analytics import LONGEST_PATH

#: A path is worth showing from here on.
LEAST_LIFT = 1.5
LEAST_SUPPORT = 5
LEAST_SESSIONS = 3
#: How likely it may be that anything at all is shown of histories without order.
_FALSE_ALARM_RATE = 0.01
_ROUNDS = 8


class ToolHabits(Struct, frozen=True):
    """What the tools of one session, or of all together, say about chance."""

    shares: dict[str, float]  # by tool: its share of all steps
    weights: dict[str, float]  # by tool, together 1: how likely it comes next where nothing forbids it
    windows: tuple[int, ...]  # how many places there are for a path of 0, 1, 2… steps


def habits(steps: Mapping[str, int], windows: Sequence[int]) -> ToolHabits:
    """From how many steps each tool has, and how many places there are for a path of each length."""
    total = sum(steps.values()) or 1
    shares = {tool: n / total for tool, n in steps.items()}
    return ToolHabits(shares, _solve_weights(shares), tuple(windows))


def habits_of(turns: Iterable[Sequence[str]]) -> ToolHabits:
    """From the tools of a session's turns, in order."""
    steps: Counter[str] = Counter()
    windows = [0] * (LONGEST_PATH + 1)
    for tools in turns:
        run = [tool for tool, _ in groupby(tools)]
        steps.update(run)
        for length in range(1, min(len(run), LONGEST_PATH) + 1):
            windows[length] += len(run) - length + 1
    return habits(steps, windows)


class Crowd:
    """Many sessions, in columns: chance in each of them is reckoned at once."""

    def __init__(self, sessions: Sequence[ToolHabits]) -> None:
        self.size = len(sessions)
        self._windows = [[one.windows[length] for one in sessions] for length in range(LONGEST_PATH + 1)]
        self._first: dict[str, list[float]] = {}
        self._middle: dict[str, list[float]] = {}
        self._last: dict[str, list[float]] = {}
        for number, one in enumerate(sessions):
            for tool, weight in one.weights.items():
                goes_on = 1 / (1 - weight) if weight < 1 else 0.0  # whatever follows shares what this tool leaves
                self._tool_column(self._first, tool)[number] = one.shares[tool] * goes_on
                self._tool_column(self._middle, tool)[number] = weight * goes_on
                self._tool_column(self._last, tool)[number] = weight

    def expected(self, path: Sequence[str]) -> float:
        """How often the path would be seen by chance, in all of them together."""
        if not all(tool in self._last for tool in path):
            return 0.0
        chance: Iterable[float] = map(mul, self._windows[len(path)], self._first[path[0]])
        for tool in path[1:-1]:
            chance = map(mul, chance, self._middle[tool])
        return float(sum(map(mul, chance, self._last[path[-1]])))

    def _tool_column(self, columns: dict[str, list[float]], tool: str) -> list[float]:
        return columns.get(tool) or columns.setdefault(tool, [0.0] * self.size)


def next_by_chance(before: str, tool: str, of: ToolHabits) -> float:
    """The chance that this tool follows that one."""
    rest = 1 - of.weights.get(before, 0.0)
    return of.weights.get(tool, 0.0) / rest if rest > 0 else 0.0


def is_surprising(seen: float, by_chance: float, looked_at: int) -> bool:
    """Whether that many are more than chance explains, when there were so many places to look at."""
    if seen < LEAST_SUPPORT or seen < LEAST_LIFT * by_chance:
        return False
    return seen * log(seen / max(by_chance, 1e-9)) - seen + by_chance > log(max(looked_at, 1) / _FALSE_ALARM_RATE)


def _solve_weights(shares: Mapping[str, float]) -> dict[str, float]:
    """Weights w with w(1 - w) in proportion to the shares: what a tool would have if it could follow itself.

    A few rounds are enough, as only ratios matter; a tool with half of all steps or more is kept from swallowing the rest.
    """
    weights = dict(shares)
    for _ in range(_ROUNDS if len(shares) > 2 else 0):
        grown = {tool: share / max(1 - weights[tool], 0.05) for tool, share in shares.items()}
        total = sum(grown.values())
        weights = {tool: weight / total for tool, weight in grown.items()}
    return weights
