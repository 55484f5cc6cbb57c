"""Build the trail of a session from its calls, and read a trail by turns.

A trail contains the turns with at least one call of the session's own. Calls that a fork repeats are in it, marked, so that
the others keep their position in the turn. Results without a call are not calls.

A retry is recognised by names alone: after a tool failed, the next batch of the same turn that uses it again is a retry, one
call for each failed one. Arguments are not compared, because not even a hash of them is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from operator import attrgetter

import msgspec

from everturn.model.analytics import (
    CLASS,
    INHERITED,
    OPEN,
    PROMPT_SIZES,
    SLOT_MS,
    ActivityRow,
    Trail,
    TurnKey,
    UsageRow,
    Use,
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
        for call, batch in zip(of_turn, _batch_numbers(of_turn), strict=True):
            trail.turns.append(turn)
            trail.tools.append(numbers.setdefault(call.name, len(numbers)))
            trail.batches.append(batch)
            trail.outcomes.append(outcome(call.status, call.error_class, call.inherited))
            trail.durations.append(-1 if call.duration_ms is None else call.duration_ms)
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


def equal_runs(values: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each run of equal values."""
    start = 0
    for _, run in groupby(values):
        end = start + sum(1 for _ in run)
        yield start, end
        start = end


def retries(tools: Sequence[int], batches: Sequence[int], failed: Sequence[bool]) -> dict[int, int]:
    """Map each retry among the calls of one turn to the call it retries, by number."""
    found: dict[int, int] = {}
    waiting: dict[int, list[int]] = {}  # tool → failed calls of the last batch that used it
    for start, end in equal_runs(batches):
        for number in range(start, end):
            if earlier := waiting.get(tools[number]):
                found[number] = earlier.pop(0)
        for tool in set(tools[start:end]):
            waiting[tool] = [n for n in range(start, end) if failed[n] and tools[n] == tool]
    return found


def retry_rows(calls: Sequence[Call]) -> list[tuple[int, int, int, int]]:
    """Return (seq, idx) of each retry and of the call it retries; own calls only."""
    rows = []
    for _, group in groupby(_without_orphans(calls), key=attrgetter("turn")):
        of_turn = list(group)
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
        size = sum(prompt > limit for limit in PROMPT_SIZES)
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
    """Count own turns and calls by quarter of an hour."""
    rows: dict[int, ActivityRow] = {}

    def row_at(time: int | None) -> ActivityRow:
        return rows.setdefault(_time_slot(time), ActivityRow(session, _time_slot(time)))

    for turn in turns:
        if not turn.inherited:
            row = row_at(turn.started)
            row.turns += 1
            row.prompts += turn.starter == "human"
            row.busy_ms += turn_ms(turn) or 0
    for call in _without_orphans(calls):
        if not call.inherited:
            row = row_at(call.started)
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
