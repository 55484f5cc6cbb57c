"""Struggles: the same tool failing in the same way again and again, and what ended it.

A struggle is three or more failures of one tool with one error class in one session without a success of that tool in
between. Calls that a human rejected or interrupted, or that were cancelled because a parallel one failed, neither make
nor end one. The ending is `worked` (the tool succeeded), `another way` (other tools succeeded in the same turn, and this
one was not called again), `another error` (it failed differently), `next turn` (it first succeeded in a later turn) or
`given up`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct

from everturn.analytics import counts
from everturn.analytics.counts import TrailHandle, handles
from everturn.derive.trails import turns_of
from everturn.model.analytics import INHERITED, OPEN, Use
from everturn.store.contract import AnalyticsScope, Store

LEAST = 3
ENDINGS = ("worked", "next turn", "another way", "another error", "given up")
_NOT_THE_AGENTS = ("rejected", "interrupted", "cancelled")


class Struggle(Struct, frozen=True):
    session: int
    turn: int  # of the first failure, from 0
    tool: str
    error_class: str
    failures: int
    calls: int  # from the first failure to the end of it, all tools
    lost_ms: int  # what the failed calls took, as far as known
    ending: str  # of ENDINGS
    recovery: tuple[str, ...]  # tools between the last failure and the end of it, then what worked
    turns: int  # how many turns it went over


class Kind(Struct, frozen=True):
    """Struggles of one tool with one class of error."""

    tool: str
    error_class: str
    n: int
    sessions: int
    failures: int
    longest: int
    lost_ms: int
    endings: dict[str, int]
    recoveries: list[tuple[str, int]]  # `Read → Edit`, how often; the most frequent first
    evidence: tuple[TrailHandle, ...]  # the longest ones


def find_struggles(store: Store, scope: AnalyticsScope, least: int = LEAST) -> Iterator[Struggle]:
    """Yield every struggle, session by session."""
    counts.catch_up(store)
    for session, trail in store.trails(scope):
        failed = sum(1 for outcome in trail.outcomes if outcome and not outcome & (INHERITED | OPEN))
        if failed >= least:  # most sessions need no closer look
            yield from find_in_session(session, turns_of(trail), least)


def group_kinds(store: Store, found: Iterable[Struggle]) -> list[Kind]:
    """Group by tool and error class, most failures first."""
    groups: dict[tuple[str, str], list[Struggle]] = {}
    for one in found:
        groups.setdefault((one.tool, one.error_class), []).append(one)
    made = [_make_kind(store, group) for group in groups.values()]
    return sorted(made, key=lambda kind: (-kind.failures, kind.tool, kind.error_class))


def find_in_session(session: int, turns: Iterable[tuple[int, list[Use]]], least: int = LEAST) -> Iterator[Struggle]:
    """Yield the struggles of one session, given turn by turn."""
    calls = [(turn, use) for turn, uses in turns for use in uses if use.own]
    running: dict[str, list[int]] = {}  # by tool: indexes of its failures, all of one class
    for index, (_, use) in enumerate(calls):
        if use.error_class in _NOT_THE_AGENTS or use.status == "open":
            continue
        failures = running.get(use.tool, [])
        if use.status == "error" and (not failures or calls[failures[0]][1].error_class == use.error_class):
            running.setdefault(use.tool, []).append(index)
            continue
        if len(failures) >= least:
            yield _make_struggle(session, calls, failures, index)
        running[use.tool] = [index] if use.status == "error" else []
    for failures in running.values():
        if len(failures) >= least:
            yield _make_struggle(session, calls, failures, None)


def _make_struggle(session: int, calls: list[tuple[int, Use]], failures: list[int], end: int | None) -> Struggle:
    """`end` is the next call of the tool that did not fail in the same way; None if there was none."""
    turn, first = calls[failures[0]]
    last_turn = calls[failures[-1]][0]
    after = [(at, use) for at, use in calls[failures[-1] + 1 : end] if at == last_turn and use.status == "ok"]
    ending, recovery = _find_ending(calls, last_turn, [use.tool for _, use in after], end)
    stop = end if end is not None else failures[-1]
    return Struggle(
        session, turn, first.tool, first.error_class, len(failures), stop - failures[0] + 1,
        sum(calls[index][1].duration_ms or 0 for index in failures), ending, recovery,
        len({calls[index][0] for index in failures}),
    )  # fmt: skip


def _find_ending(
    calls: list[tuple[int, Use]], last_turn: int, between: list[str], end: int | None
) -> tuple[str, tuple[str, ...]]:
    tools = tuple(dict.fromkeys(between))
    if end is not None and calls[end][1].status == "ok":
        worked = calls[end][0] == last_turn
        return "worked" if worked else "next turn", (*(tools if worked else ()), calls[end][1].tool)
    if end is not None:
        return "another error", tools
    return ("another way", tools) if tools else ("given up", ())


def _make_kind(store: Store, group: list[Struggle]) -> Kind:
    endings = Counter(one.ending for one in group)
    recoveries = Counter(
        " → ".join(one.recovery) for one in group if one.ending in ("worked", "next turn", "another way")
    )
    longest = sorted(group, key=lambda one: (-one.failures, one.session, one.turn))
    return Kind(
        group[0].tool, group[0].error_class, len(group), len({one.session for one in group}),
        sum(one.failures for one in group), longest[0].failures, sum(one.lost_ms for one in group),
        {name: endings[name] for name in ENDINGS if endings[name]}, recoveries.most_common(3),
        handles(store, islice(dict.fromkeys((one.session, one.turn) for one in longest), 3)),
    )  # fmt: skip
