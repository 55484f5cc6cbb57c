"""Build the trail of a session from its calls, read a trail by turns, and count how tools are used from trails.

A trail contains the turns with at least one call of the session's own. Calls that a fork repeats are in it, marked, so that
the others keep their position in the turn. Results without a call are not calls.

A retry is recognised by names alone: after a tool failed, the next batch of the same turn that uses it again is a retry, one
call for each failed one. Arguments are not compared, because not even a hash of them is kept.

`TallyBuilder` adds up trails to the tables of `model.analytics.TALLIES`; only the requested tables are counted. Paths and
pairs stay within a turn. Each is counted in the session that owns its last call, so calls repeated by a fork count once, and
its new calls count with those before. The meaning of a number must not change without a new `RULES`: totals are updated by
subtracting what the same code counted before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from hashlib import blake2b
from itertools import combinations, groupby, pairwise
from operator import attrgetter

import msgspec

from everturn.model.analytics import (
    ARROW,
    CLASS,
    EDGE,
    INHERITED,
    LAST_POSITION,
    LONGEST_PATH,
    OPEN,
    PROMPT_SIZES,
    SLOT_MS,
    TALLIES,
    ActivityRow,
    Tally,
    Trail,
    TurnKey,
    UsageRow,
    Use,
    bucket_of,
    outcome,
)
from everturn.model.archive import Call, Session, Step, Turn
from everturn.model.vocabulary import ERROR_CLASSES
from everturn.text.times import turn_ms

_ENCODER, _DECODER = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Trail)


def trail_of(calls: Sequence[Call]) -> Trail:
    """Return the trail of a session's calls, given in file order."""
    trail, numbers = Trail([], [], [], [], [], []), dict[str, int]()
    for turn, group in groupby(_without_orphans(calls), key=attrgetter("turn")):
        of_turn = list(group)
        if all(call.inherited for call in of_turn):
            continue
        trail.turns.extend([turn] * len(of_turn))
        trail.tools.extend([numbers.setdefault(call.name, len(numbers)) for call in of_turn])
        trail.batches.extend(_batch_numbers(of_turn))
        trail.outcomes.extend([outcome(call.status, call.error_class, call.inherited) for call in of_turn])
        trail.durations.extend([-1 if call.duration_ms is None else call.duration_ms for call in of_turn])
    trail.names.extend(numbers)
    return trail


def pack(trail: Trail) -> bytes:
    """Encode a trail as MessagePack, one list per column."""
    return _ENCODER.encode(trail)


def unpack(data: bytes) -> Trail:
    return _DECODER.decode(data)


def turns_of(trail: Trail) -> Iterator[tuple[int, list[Use]]]:
    """Yield the turns of a trail with their calls, in order."""
    for start, end in equal_runs(trail.turns):
        yield trail.turns[start], _uses(trail, start, end)


def equal_runs(values: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each run of equal values."""
    start = 0
    for end, (before, after) in enumerate(pairwise(values), 1):
        if before != after:
            yield start, end
            start = end
    if values:
        yield start, len(values)


def retries(tools: Sequence[int], batches: Sequence[int], failed: Sequence[bool]) -> dict[int, int]:
    """Map each retry among the calls of one turn to the call it retries, by number."""
    found: dict[int, int] = {}
    if not any(failed):
        return found
    waiting: dict[int, list[int]] = {}  # tool → failed calls of the last batch that used it
    for start, end in equal_runs(batches):
        if waiting:
            retried = {number: waiting.get(tools[number]) for number in range(start, end)}
            found |= {number: earlier.pop(0) for number, earlier in retried.items() if earlier}
            for tool in tools[start:end]:
                waiting.pop(tool, None)
        for number in range(start, end):
            if failed[number]:
                waiting.setdefault(tools[number], []).append(number)
    return found


def retry_rows(calls: Sequence[Call]) -> list[tuple[int, int, int, int]]:
    """Return (seq, idx) of each retry and of the call it retries; own calls only."""
    rows = []
    for _, group in groupby(_without_orphans(calls), key=attrgetter("turn")):
        of_turn = list(group)
        if not any(call.status == "error" for call in of_turn):
            continue
        names = {call.name: number for number, call in enumerate(of_turn)}
        tools = [names[call.name] for call in of_turn]
        found = retries(tools, _batch_numbers(of_turn), [call.status == "error" for call in of_turn])
        pairs = ((of_turn[later], of_turn[earlier]) for later, earlier in found.items())
        rows += [(a.seq, a.idx, b.seq, b.idx) for a, b in pairs if not a.inherited]
    return rows


def turn_keys(session: Session, turns: Sequence[Turn]) -> list[TurnKey]:
    """Return a stable name for each turn: a hash of the session's id and the start of the turn.

    A turn without a time uses its first message instead; of several with the same start the later ones are numbered.
    """
    seen: dict[str, int] = {}
    keys = []
    for turn in turns:
        start = f"#{turn.first_seq}" if turn.started is None else str(turn.started)
        again = seen[start] = seen.get(start, -1) + 1
        words = "\0".join((session.agent, session.native_id, start, *([str(again)] if again else [])))
        keys.append(TurnKey(session.id, turn.idx, blake2b(words.encode("utf-8", "replace"), digest_size=8).hexdigest()))
    return keys


def usage_rows(session: int, steps: Sequence[Step]) -> list[UsageRow]:
    """Sum tokens by quarter of an hour and model. Both halves of a split response count as one response."""
    rows: dict[tuple[int, str, int, int], UsageRow] = {}
    sizes: dict[str, int] = {}
    for step in steps:
        prompt = step.tokens_in + step.tokens_cache_read + step.tokens_cache_write
        if not (prompt or step.tokens_out):
            continue
        size = bisect_left(PROMPT_SIZES, prompt)
        size = sizes.setdefault(step.provider_id, size) if step.provider_id else size
        key = (_time_slot(step.started), step.model, step.inherited, size)
        row = rows.get(key) or rows.setdefault(key, UsageRow(session, *key))
        row.responses += not step.resumes
        row.tokens_in += step.tokens_in
        row.tokens_out += step.tokens_out
        row.tokens_cache_read += step.tokens_cache_read
        row.tokens_cache_write += step.tokens_cache_write
        row.tokens_cache_write_1h += step.tokens_cache_write_1h
    return [rows[key] for key in sorted(rows)]


def activity_rows(session: int, turns: Sequence[Turn], calls: Sequence[Call]) -> list[ActivityRow]:
    """Count own turns and calls by quarter of an hour. A call without a time counts where its turn began."""
    rows: dict[int, ActivityRow] = {}

    def row_at(time: int | None) -> ActivityRow:
        return rows.setdefault(_time_slot(time), ActivityRow(session, _time_slot(time)))

    began = {turn.idx: turn.started for turn in turns}
    for turn in turns:
        if not turn.inherited:
            row = row_at(turn.started)
            row.turns += 1
            row.prompts += turn.starter == "human"
            row.busy_ms += turn_ms(turn) or 0
    for call in _without_orphans(calls):
        if not call.inherited:
            row = row_at(call.started if call.started is not None else began.get(call.turn))
            row.calls += 1
            row.errors += call.status == "error"
    return [rows[slot] for slot in sorted(rows)]


def _without_orphans(calls: Sequence[Call]) -> list[Call]:
    return [call for call in calls if call.status != "orphan"]


def _batch_numbers(calls: Sequence[Call]) -> list[int]:
    """Return the batch number of each call. A call outside a response is a batch of its own."""
    numbers, last = list[int](), -1
    for number, call in enumerate(calls):
        new = number == 0 or call.step < 0 or call.step != calls[number - 1].step
        last += new
        numbers.append(last)
    return numbers


def _uses(trail: Trail, start: int, end: int) -> list[Use]:
    tools, batches, outcomes = trail.tools[start:end], trail.batches[start:end], trail.outcomes[start:end]
    failed = [bool(code & CLASS) for code in outcomes]
    again = retries(tools, batches, failed)
    uses: list[Use] = []
    index = 0
    for number, (tool, batch, code) in enumerate(zip(tools, batches, outcomes, strict=True)):
        index = index + 1 if number and batches[number - 1] == batch else 0
        status = "error" if failed[number] else "open" if code & OPEN else "ok"
        spent = trail.durations[start + number]
        uses.append(
            Use(
                trail.names[tool], batch, index, status, ERROR_CLASSES[code & CLASS],
                None if spent < 0 else spent, not code & INHERITED, again.get(number, -1),
            )
        )  # fmt: skip
    return uses


def _time_slot(time: int | None) -> int:
    return -1 if time is None else time // SLOT_MS


# --- tallies ---

#: Changes when the same trail would give other numbers.
RULES = 2

ALL = tuple(table.name for table in TALLIES)

_WIDTH = {table.name: len(table.counters) for table in TALLIES}
_EDGE = -1  # the number of EDGE
_SUMS = ("sessions", "turns", "calls", "errors", "batches", "parallel")


class _Counts(dict[tuple[int | str, ...], list[int]]):
    """Key → counters, then the numbers of the session and turn last counted; zeros when first asked for."""

    def __init__(self, table: str) -> None:
        self._width = _WIDTH[table] + 2

    def __missing__(self, key: tuple[int | str, ...]) -> list[int]:
        row = self[key] = [0] * self._width
        return row


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
        self._tables = tables
        self._counts = {name: _Counts(name) for name in ALL}
        self._paths: dict[tuple[int, ...], list[int]] = {}
        self._session = self._turn = 0
        self._totalled = 0  # the last session in `plane_total`
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
        for table in self._tables:
            width, of_names = _WIDTH[table], _NAMED.get(table, ())
            result[table] = {
                (subagent, *(names[int(part)] if at in of_names else part for at, part in enumerate(key))): row[:width]
                for key, row in self._counts[table].items()
            }
        if "tool_path" in result:
            for path, row in self._paths.items():
                if row[0] >= least:
                    words = ARROW.join([names[tool] for tool in path])
                    result["tool_path"][subagent, len(path), words] = row[: _WIDTH["tool_path"]]
        return result

    # --- the parts ---
    def _count_calls(self, turn: _TurnColumns) -> None:
        totals, positions = self._counts["tool_total"], self._counts["tool_position"]
        times, failures = self._counts["tool_duration"], self._counts["tool_failure"]
        session, number = self._session, self._turn
        again = retries(turn.tools, turn.batches, turn.failed)
        single = {start for start, end in turn.spans if end - start == 1}
        for n, tool in enumerate(turn.tools):
            if not turn.own[n]:
                continue
            batch, failed, spent, code = turn.batches[n], turn.failed[n], turn.durations[n], turn.outcomes[n]
            row = totals[tool,]
            row[0] += 1
            row[1] += failed
            row[2] += bool(code & OPEN)
            row[3] += row[10] != session
            row[4] += row[11] != number
            row[5] += n in again
            row[6] += n not in single
            row[9] += batch
            row[10], row[11] = session, number
            position = positions[tool, batch if batch < LAST_POSITION else LAST_POSITION]
            position[0] += 1
            position[1] += failed
            if spent >= 0:
                row[7] += 1
                row[8] += spent
                times[tool, bucket_of(spent)][0] += 1
            if failed:
                failure = failures[tool, ERROR_CLASSES[code & CLASS]]
                failure[0] += 1
                failure[1] += failure[2] != session
                failure[2] = session

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
        row = self._counts["tool_pair"][key]
        row[0] += 1
        row[1] += failed
        row[2] += row[3] != self._session
        row[3] = self._session

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
        row = self._counts["turn_length"][calls,]
        row[0] += 1
        row[1] += errors > 0
        own = [(start, end) for start, end in turn.spans if turn.own[start]]
        parallel = sum([end - start > 1 for start, end in own])
        is_first, self._totalled = self._totalled != self._session, self._session
        found = (is_first, 1, calls, errors, len(own), parallel)
        for what, n in zip(_SUMS, found, strict=True):
            self._add_total(what, n)
        steps = [turn.own[n] for n, tool in enumerate(turn.tools) if n == 0 or tool != turn.tools[n - 1]]
        for length in range(1, min(LONGEST_PATH, len(steps)) + 1):
            self._add_total(f"path{length}", sum(steps[length - 1 :]))

    def _add_total(self, what: str, n: int) -> None:
        if n:
            self._counts["plane_total"][what,][0] += n


#: Positions in a key that are numbers of tools.
_NAMED = {"tool_total": (0,), "tool_position": (0,), "tool_duration": (0,), "tool_failure": (0,), "tool_pair": (1, 2)}
