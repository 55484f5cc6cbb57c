"""Turns: how long, with which tools in which order, how many failed; one by one, or by the shape they share.

The list is read from the structure tables, newest session first, and costs what is looked at until the page is full. Shapes
are counted over the trails of the plane. A turn that a fork repeats is told where it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from everturn.analyse import plane
from everturn.analyse.plane import AnalyticsScope
from everturn.analyse.shapes import ShapePattern, fits, shape, tool_of, write_shape
from everturn.analyse.tracks import TrailHandle, handles
from everturn.derive.times import turn_ms
from everturn.model.analytics import SUBAGENT_KINDS, Use
from everturn.model.archive import Call, Session, Turn
from everturn.store import SessionFilter, Store

_PAGE = 50
_EXAMPLES = 3


class TurnRow(Struct, frozen=True):
    """One turn, without a word of it."""

    session: str  # native id
    agent: str
    turn: int  # counted from 1
    subagent: bool
    starter: str  # human | agent | none
    started: int | None
    duration_ms: int | None
    calls: int
    batches: int
    errors: int
    parallel: int  # calls that ran beside others
    shape: str  # `Read{2+} → Edit`
    tools: tuple[str, ...]  # each once, in the order of their first call
    compacted: bool
    interrupted: bool


class TurnFilter(Struct, frozen=True):
    """Which turns. What is empty does not limit."""

    min_length: int = 1  # calls
    pattern: ShapePattern | None = None
    failed: bool = False  # only with a failed call


class ShapeRow(Struct, frozen=True):
    """Turns of one shape."""

    shape: str
    n: int
    sessions: int
    share: float  # of all turns that fit
    calls: float  # on average
    failed: float  # share of the turns with a failed call
    tool_ms: int | None  # what the calls of such a turn took together, in the middle
    evidence: tuple[TrailHandle, ...]


def list_turn_rows(store: Store, scope: AnalyticsScope, wanted: TurnFilter, limit: int = 20) -> list[TurnRow]:
    """The newest turns that fit."""
    return list(islice(_iterate_turns(store, scope, wanted), limit))


def list_shape_rows(
    store: Store, scope: AnalyticsScope, wanted: TurnFilter, top: int = 20
) -> tuple[list[ShapeRow], int, int]:
    """Shapes of turns, the most frequent first; how many different ones there are; and how many turns."""
    plane.catch_up(store)
    groups: dict[tuple[str, ...], _ShapeGroup] = {}
    for session, trail in plane.trails(store, scope):
        for turn, uses in plane.turns_of(trail):
            own = [use for use in uses if use.own]
            tokens = shape(use.tool for use in own)
            if _is_wanted(wanted, tokens, len(own), any(use.status == "error" for use in own)):
                groups.setdefault(tokens, _ShapeGroup()).add(session, turn, own)
    total = sum(group.n for group in groups.values())
    first = sorted(groups.items(), key=lambda item: (-item[1].n, item[0]))[:top]
    return [_make_shape_row(store, tokens, group, total) for tokens, group in first], len(groups), total


def sessions_of(store: Store, scope: AnalyticsScope) -> Iterator[Session]:
    """The sessions of a scope, newest first; also older editions, which may own what newer ones repeat."""
    if scope.only is not None:
        found = [store.session(number)[0] for number in scope.only]
        yield from sorted(found, key=lambda one: (one.ended or 0, one.id), reverse=True)
        return
    kinds = ("main", *SUBAGENT_KINDS) if scope.subagents else ("main",)
    wanted = replace(scope.sessions or SessionFilter(), kinds=kinds, states=("current", "superseded"))
    cursor = ""
    while True:
        rows, cursor = store.sessions(wanted, _PAGE, cursor)
        yield from (session for session, _ in rows)
        if not cursor:
            return


class _ShapeGroup:
    """What is gathered of one shape."""

    def __init__(self) -> None:
        self.n = self.calls = self.failed = 0
        self.sessions: set[int] = set()
        self.times: list[int] = []
        self.places: list[tuple[int, int]] = []

    def add(self, session: int, turn: int, uses: list[Use]) -> None:
        self.n += 1
        self.calls += len(uses)
        self.failed += any(use.status == "error" for use in uses)
        if session not in self.sessions and len(self.places) < _EXAMPLES:
            self.places.append((session, turn))
        self.sessions.add(session)
        self.times += [sum(known)] if (known := [u.duration_ms for u in uses if u.duration_ms is not None]) else []


def _iterate_turns(store: Store, scope: AnalyticsScope, wanted: TurnFilter) -> Iterator[TurnRow]:
    for session in sessions_of(store, scope):
        if session.n_calls < wanted.min_length or (wanted.failed and not session.n_errors):
            continue
        by_turn: dict[int, list[Call]] = {}
        for call in store.calls(session.id):
            if call.status != "orphan" and not call.inherited:
                by_turn.setdefault(call.turn, []).append(call)
        for turn in reversed(store.turns(session.id)):
            calls = by_turn.get(turn.idx, [])
            tokens = shape(call.name for call in calls)
            failed = any(call.status == "error" for call in calls)
            if not turn.inherited and _is_wanted(wanted, tokens, len(calls), failed):
                yield _make_row(session, turn, calls, tokens)


def _is_wanted(wanted: TurnFilter, tokens: tuple[str, ...], calls: int, failed: bool) -> bool:
    if calls < wanted.min_length or (wanted.failed and not failed):
        return False
    return wanted.pattern is None or fits(wanted.pattern, tokens)


def _make_row(session: Session, turn: Turn, calls: list[Call], tokens: tuple[str, ...]) -> TurnRow:
    return TurnRow(
        session.native_id, session.agent, turn.idx + 1, session.kind in SUBAGENT_KINDS, turn.starter, turn.started,
        turn_ms(turn), len(calls), len({call.position for call in calls}), sum(c.status == "error" for c in calls),
        _count_parallel(calls), write_shape(tokens), tuple(dict.fromkeys(map(tool_of, tokens))), bool(turn.compacted),
        bool(turn.interrupted),
    )  # fmt: skip


def _count_parallel(calls: Iterable[Call]) -> int:
    batches: dict[int, int] = {}
    for call in calls:
        batches[call.step] = batches.get(call.step, 0) + 1
    return sum(size for size in batches.values() if size > 1)


def _make_shape_row(store: Store, tokens: tuple[str, ...], group: _ShapeGroup, total: int) -> ShapeRow:
    return ShapeRow(
        write_shape(tokens), group.n, len(group.sessions), round(group.n / total, 4), round(group.calls / group.n, 2),
        round(group.failed / group.n, 4), int(median(group.times)) if group.times else None,
        handles(store, group.places),
    )  # fmt: skip
