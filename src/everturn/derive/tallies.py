"""Count how tools are used: from trails to the tables of `model.analytics.TALLIES`.

`TallyBuilder` adds up trails; only the requested tables are counted. Paths and pairs stay within a turn. Each is counted in
the session that owns its last call, so calls repeated by a fork count once, and its new calls count with those before.

The meaning of a number must not change without a new `RULES`: totals are updated by subtracting what the same code
counted before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from everturn.derive.trails import equal_runs, retries
from everturn.model.analytics import (
    ARROW,
    CLASS,
    EDGE,
    INHERITED,
    LAST_POSITION,
    LONGEST_PATH,
    OPEN,
    TALLIES,
    Tally,
    Trail,
    bucket_of,
)
from everturn.model.vocabulary import ERROR_CLASSES

#: Changes when the same trail would give other numbers.
RULES = 1

ALL = tuple(table.name for table in TALLIES)

_WIDTH = {table.name: len(table.counters) for table in TALLIES}
_EDGE = -1  # the number of EDGE
_SUMS = ("sessions", "turns", "calls", "errors", "batches", "parallel")

#: key → counters, then the numbers of the session and turn last counted.
_Counts = dict[tuple[int | str, ...], list[int]]


class _TurnColumns:
    """One turn of a trail, in columns; tools by their number in the builder."""

    def __init__(self, tools: list[int], batches: list[int], outcomes: list[int], durations: list[int]) -> None:
        self.tools, self.batches, self.durations, self.outcomes = tools, batches, durations, outcomes
        self.failed = [bool(code & CLASS) for code in outcomes]
        self.own = [code < INHERITED for code in outcomes]
        self.spans = list(equal_runs(batches))


class TallyBuilder:
    """Adds up trails."""

    def __init__(self, tables: Collection[str] = ALL) -> None:
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._counts: dict[str, _Counts] = {name: {} for name in tables}
        self._paths: dict[tuple[int, ...], list[int]] = {}
        self._session = self._turn = 0
        parts = (
            (("tool_total", "tool_position", "tool_duration", "tool_failure"), self._count_calls),
            (("tool_pair",), self._count_pairs),
            (("tool_path",), self._count_paths),
            (("turn_length", "plane_total"), self._count_totals),
        )
        self._parts = [part for names, part in parts if not set(names).isdisjoint(tables)]

    def add(self, trail: Trail) -> None:
        numbers = self._numbers
        ids = [numbers.setdefault(name, len(numbers)) for name in trail.names]
        self._names = list(numbers)
        tools = [ids[tool] for tool in trail.tools]
        self._session += 1
        for start, end in equal_runs(trail.turns):
            self._turn += 1
            turn = _TurnColumns(
                tools[start:end], trail.batches[start:end], trail.outcomes[start:end], trail.durations[start:end]
            )
            for part in self._parts:
                part(turn)

    def tally(self, subagent: int, least: int = 1) -> Tally:
        """Return the rows of the tables, without paths seen less often than `least`."""
        names = [*self._numbers, EDGE]  # EDGE is the last: number -1
        result: Tally = {}
        for table, counts in self._counts.items():
            width, of_names = _WIDTH[table], _NAMED.get(table, ())
            result[table] = {
                (subagent, *(names[int(part)] if at in of_names else part for at, part in enumerate(key))): row[:width]
                for key, row in counts.items()
            }
        if "tool_path" in result:
            for path, row in self._paths.items():
                if row[0] >= least:
                    words = ARROW.join([names[tool] for tool in path])
                    result["tool_path"][subagent, len(path), words] = row[: _WIDTH["tool_path"]]
        return result

    # --- the parts ---
    def _count_calls(self, turn: _TurnColumns) -> None:
        again = retries(turn.tools, turn.batches, turn.failed) if any(turn.failed) else {}
        single = {start for start, end in turn.spans if end - start == 1}
        for n, tool in enumerate(turn.tools):
            if not turn.own[n]:
                continue
            batch, failed, spent, code = turn.batches[n], turn.failed[n], turn.durations[n], turn.outcomes[n]
            if (row := self._row("tool_total", (tool,))) is not None:
                row[0] += 1
                row[1] += failed
                row[2] += bool(code & OPEN)
                row[3] += self._count_first(row, 10, self._session)
                row[4] += self._count_first(row, 11, self._turn)
                row[5] += n in again
                row[6] += n not in single
                row[7] += spent >= 0
                row[8] += max(spent, 0)
                row[9] += batch
            if (row := self._row("tool_position", (tool, min(batch, LAST_POSITION)))) is not None:
                row[0] += 1
                row[1] += failed
            self._count_time_and_failure(tool, spent, code & CLASS)

    def _count_time_and_failure(self, tool: int, spent: int, error: int) -> None:
        if spent >= 0 and (row := self._row("tool_duration", (tool, bucket_of(spent)))) is not None:
            row[0] += 1
        if error and (row := self._row("tool_failure", (tool, ERROR_CLASSES[error]))) is not None:
            row[0] += 1
            row[1] += self._count_first(row, 2, self._session)

    def _count_pairs(self, turn: _TurnColumns) -> None:
        before: dict[int, bool] = {_EDGE: False}  # tool → failed
        for start, end in turn.spans:
            now: dict[int, bool] = {}
            for n in range(start, end):
                now[turn.tools[n]] = now.get(turn.tools[n], False) or turn.failed[n]
            if turn.own[start]:
                self._count_following(before, now)
                if end - start > 1:
                    self._count_parallel(turn, start, end)
            before = now
        if turn.own[-1]:
            self._count_following(before, {_EDGE: False})

    def _count_following(self, before: dict[int, bool], now: dict[int, bool]) -> None:
        for first, first_failed in before.items():
            for second, second_failed in now.items():
                self._count_pair(("next", first, second), second_failed)
                if first_failed:
                    self._count_pair(("recovery", first, second), second_failed)

    def _count_parallel(self, turn: _TurnColumns, start: int, end: int) -> None:
        names = self._names
        for a, b in combinations(range(start, end), 2):
            first, second = turn.tools[a], turn.tools[b]
            if names[second] < names[first]:
                first, second = second, first
            self._count_pair(("parallel", first, second), turn.failed[a] or turn.failed[b])

    def _count_pair(self, key: tuple[int | str, ...], failed: bool) -> None:
        if (row := self._row("tool_pair", key)) is not None:
            row[0] += 1
            row[1] += failed
            row[2] += self._count_first(row, 3, self._session)

    def _count_paths(self, turn: _TurnColumns) -> None:
        """Count every path of up to LONGEST_PATH steps; a step is a tool, called once or several times in a row."""
        spans = list(equal_runs(turn.tools))
        starts = [start for start, _ in spans]
        steps = tuple([turn.tools[n] for n in starts])
        repeated = [end - start > 1 for start, end in spans]
        failed = [any(turn.failed[start:end]) for start, end in spans]
        for last, start in enumerate(starts):
            if turn.own[start]:
                self._count_paths_to(turn, steps, starts, repeated, failed, last)

    def _count_paths_to(
        self, turn: _TurnColumns, steps: tuple[int, ...], starts: Sequence[int], repeated: list[bool], failed: list[bool],
        last: int,
    ) -> None:  # fmt: skip
        paths, session, number = self._paths, self._session, self._turn
        again = error = False
        for first in range(last, max(last - LONGEST_PATH, -1), -1):
            path = steps[first : last + 1]
            if (row := paths.get(path)) is None:
                row = paths[path] = [0] * 13
            row[0] += 1
            if row[11] != session:
                row[11] = session
                row[1] += 1
            if row[12] != number:
                row[12] = number
                row[2] += 1
            row[3] += turn.batches[starts[first]]
            error = error or failed[first]
            row[4] += error
            again = again or repeated[first]
            if again:
                for step in range(first, last + 1):
                    row[5 + step - first] += repeated[step]

    def _count_totals(self, turn: _TurnColumns) -> None:
        calls, errors = sum(turn.own), sum(map(int.__and__, map(int, turn.own), map(int, turn.failed)))
        if (row := self._row("turn_length", (calls,))) is not None:
            row[0] += 1
            row[1] += errors > 0
        if "plane_total" not in self._counts:
            return
        own = [(start, end) for start, end in turn.spans if turn.own[start]]
        parallel = sum(end - start > 1 for start, end in own)
        sessions = self._row("plane_total", ("sessions",)) or [0, 0]
        found = (self._count_first(sessions, 1, self._session), 1, calls, errors, len(own), parallel)
        for what, n in zip(_SUMS, found, strict=True):
            self._add_total(what, n)
        steps = [turn.own[n] for n, tool in enumerate(turn.tools) if n == 0 or tool != turn.tools[n - 1]]
        for length in range(1, min(LONGEST_PATH, len(steps)) + 1):
            self._add_total(f"path{length}", sum(steps[length - 1 :]))

    def _add_total(self, what: str, n: int) -> None:
        row = self._row("plane_total", (what,)) if n else None
        if row is not None:
            row[0] += n

    # --- rows ---
    def _row(self, table: str, key: tuple[int | str, ...]) -> list[int] | None:
        if (counts := self._counts.get(table)) is None:
            return None
        if (row := counts.get(key)) is None:
            row = counts[key] = [0] * (_WIDTH[table] + 2)
        return row

    @staticmethod
    def _count_first(row: list[int], place: int, number: int) -> int:
        """Return 1 if the row was not yet counted in this session or turn, else 0."""
        if row[place] == number:
            return 0
        row[place] = number
        return 1


#: Positions in a key that are numbers of tools.
_NAMED = {"tool_total": (0,), "tool_position": (0,), "tool_duration": (0,), "tool_failure": (0,), "tool_pair": (1, 2)}
