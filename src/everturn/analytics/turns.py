"""Turns: length, tools in order, failures; one by one, or grouped by shape.

The list is read from the structure tables, newest session first, and costs what is read until the page is full. Shapes are
counted over the trails of the plane. A turn that a fork repeats is listed where it was made.

The shape of a turn is its tools in order with repeats collapsed: two or more calls of one tool in a row are one token,
`Read{2+}`, so that turns that did the same with more or fewer files have the same shape. A pattern is tokens joined by `→`
(or `->`, `>`), and fits a shape in which its tokens are adjacent:

    Read → Edit          a single Read, then a single Edit
    Read{1+} → Edit{1+}  one or more of each
    mcp__* → *           a tool by its beginning, then any one
    Grep → … → Edit      anything in between, or nothing
    ^Read → Edit$        the whole turn
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import groupby, islice
from statistics import median

from msgspec import Struct
from msgspec.structs import replace

from everturn.analytics import counts
from everturn.analytics.counts import TrailHandle, handles
from everturn.derive.trails import turns_of
from everturn.errors import UsageError
from everturn.model.analytics import ARROW, SUBAGENT_KINDS, Use
from everturn.model.archive import Call, Session, Step, Turn
from everturn.sessions.lineage import lineage
from everturn.sessions.lookup import iterate_sessions
from everturn.store.contract import AnalyticsScope, SessionFilter, Store
from everturn.text.times import turn_ms

REPEATED = "{2+}"
_ANY_COUNT = "{1+}"
_GAP = ("…", "...", "**")
_JOINT = re.compile(r"\s*(?:→|->|>)\s*")
_REPEATS = re.compile(r"\{[^{}]*\}$")  # any other count, which shapes do not record
_MOST = 20  # tokens of a pattern

Shape = tuple[str, ...]


class ShapePart(Struct, frozen=True):
    tool: str  # with wildcards; "" for a gap of any length
    repeats: str = ""  # REPEATED | _ANY_COUNT | ""


class ShapePattern(Struct, frozen=True):
    parts: tuple[ShapePart, ...]
    from_start: bool = False
    to_end: bool = False


def shape(tools: Iterable[str]) -> Shape:
    """Return tools in order as tokens, repeats collapsed."""
    return tuple(tool + REPEATED * (sum(1 for _ in run) > 1) for tool, run in groupby(tools))


def write_shape(tokens: Sequence[str]) -> str:
    return ARROW.join(tokens)


def tool_of(token: str) -> str:
    return token.removesuffix(REPEATED)


def read_pattern(text: str) -> ShapePattern:
    """Parse a pattern. Raises UsageError."""
    words = text.strip()
    from_start, to_end = words.startswith("^"), words.endswith("$")
    tokens = _JOINT.split(words.removeprefix("^").removesuffix("$").strip())
    parts = tuple(map(_parse_part, tokens))
    if not all(tokens) or len(tokens) > _MOST or any(_REPEATS.search(part.tool) for part in parts):
        like = "'Read → Edit', 'Grep -> * -> Edit{1+}', with {1+} and {2+} only"
        raise UsageError(f"{text!r} is not a pattern of tools; write it like {like}")
    return ShapePattern(parts, from_start, to_end)


def fits(pattern: ShapePattern, tokens: Sequence[str]) -> bool:
    reached = {0} if pattern.from_start else set(range(len(tokens) + 1))
    for part in pattern.parts:
        if not part.tool:
            reached = set(range(min(reached), len(tokens) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(tokens) and _is_match(part, tokens[at])}
    return len(tokens) in reached if pattern.to_end else bool(reached)


def matches_name(pattern: str, tool: str) -> bool:
    """Whether a name with wildcards means a tool, ignoring case."""
    return fnmatchcase(tool.casefold(), pattern.casefold())


def _parse_part(text: str) -> ShapePart:
    if text in _GAP:
        return ShapePart("")
    for repeats in (REPEATED, _ANY_COUNT):
        if text.endswith(repeats) and text != repeats:
            return ShapePart(text.removesuffix(repeats), repeats)
    return ShapePart(text, _ANY_COUNT if text == "*" else "")


def _is_match(part: ShapePart, token: str) -> bool:
    tool = tool_of(token)
    return matches_name(part.tool, tool) and (
        part.repeats == _ANY_COUNT or (part.repeats == REPEATED) == (tool != token)
    )


_PAGE = 50
_DEEPEST = 5  # levels of subagents
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
    tokens: int = 0  # of its own responses, cached ones included
    inclusive_calls: int = 0  # with those of the subagents it started
    inclusive_tokens: int = 0
    inclusive_ms: int | None = None  # its own time and that of its subagents, added up
    reported_calls: int = 0  # of subagents that are known only from the results of its calls; in no other count
    reported_tokens: int = 0
    taken_back: bool = False  # the person went back before it


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
    return list(islice(_iterate_turns(store, scope, wanted), limit))


def list_shape_rows(
    store: Store, scope: AnalyticsScope, wanted: TurnFilter, top: int = 20
) -> tuple[list[ShapeRow], int, int]:
    """Return shapes of turns, most frequent first, the number of different ones, and the number of turns."""
    counts.catch_up(store)
    groups: dict[tuple[str, ...], _ShapeGroup] = {}
    for session, trail in store.trails(scope):
        for turn, uses in turns_of(trail):
            own = [use for use in uses if use.own]
            tokens = shape(use.tool for use in own)
            if _passes_filter(wanted, tokens, len(own), any(use.status == "error" for use in own)):
                groups.setdefault(tokens, _ShapeGroup()).add(session, turn, own)
    total = sum(group.n for group in groups.values())
    first = sorted(groups.items(), key=lambda item: (-item[1].n, item[0]))[:top]
    return [_make_shape_row(store, tokens, group, total) for tokens, group in first], len(groups), total


def sessions_of(store: Store, scope: AnalyticsScope) -> Iterator[Session]:
    """Yield the sessions of a scope, newest first, with older versions, which may own what newer ones repeat."""
    if scope.only is not None:
        found = [store.session(number)[0] for number in scope.only]
        yield from sorted(found, key=lambda one: (one.ended or 0, one.id), reverse=True)
        return
    kinds = ("main", *SUBAGENT_KINDS) if scope.subagents else ("main",)
    filters = replace(scope.sessions or SessionFilter(), kinds=kinds, states=("current", "superseded"))
    yield from iterate_sessions(store, filters, _PAGE)


class _ShapeGroup:
    def __init__(self) -> None:
        self.n = self.calls = self.failed = 0
        self.sessions: set[int] = set()
        self.times: list[int] = []
        self.examples: list[tuple[int, int]] = []

    def add(self, session: int, turn: int, uses: list[Use]) -> None:
        self.n += 1
        self.calls += len(uses)
        self.failed += any(use.status == "error" for use in uses)
        if session not in self.sessions and len(self.examples) < _EXAMPLES:
            self.examples.append((session, turn))
        self.sessions.add(session)
        self.times += [sum(known)] if (known := [u.duration_ms for u in uses if u.duration_ms is not None]) else []


def _iterate_turns(store: Store, scope: AnalyticsScope, filters: TurnFilter) -> Iterator[TurnRow]:
    for session in sessions_of(store, scope):
        if session.n_calls < filters.min_length or (filters.failed and not session.n_errors):
            continue
        by_turn: dict[int, list[Call]] = {}
        work: _TurnWork | None = None
        for call in store.calls(session.id):
            if call.status != "orphan" and not call.inherited:
                by_turn.setdefault(call.turn, []).append(call)
        for turn in reversed(store.turns(session.id)):
            calls = by_turn.get(turn.idx, [])
            tokens = shape(call.name for call in calls)
            failed = any(call.status == "error" for call in calls)
            if not turn.inherited and _passes_filter(filters, tokens, len(calls), failed):
                work = work or _TurnWork(store, session)
                yield work.complete(_make_row(session, turn, calls, tokens), turn)


class _TurnWork:
    """Tokens by turn of one session, and what the subagents did that its turns started."""

    def __init__(self, store: Store, session: Session) -> None:
        self._tokens: Counter[int] = Counter()
        for step in store.steps(session.id):
            self._tokens[step.turn] += 0 if step.inherited else _step_tokens(step)
        self._children: dict[int, list[Session]] = {}
        for child in lineage(store, session).children if session.n_calls else ():
            if child.session is not None and child.call is not None and child.session.kind in SUBAGENT_KINDS:
                self._children.setdefault(child.call.turn, []).append(child.session)
        self._reported: dict[int, tuple[int, int]] = {}
        for row in store.reported(AnalyticsScope(only=(session.id,))):
            calls, tokens = self._reported.get(row.turn, (0, 0))
            self._reported[row.turn] = calls + row.calls, tokens + row.tokens
        self._store = store

    def complete(self, row: TurnRow, turn: Turn) -> TurnRow:
        """Return the row with its own, inclusive and reported counts."""
        own = self._tokens[turn.idx]
        below = [self._below(child, 1) for child in self._children.get(turn.idx, ())]
        took = [ms for _, _, ms in below if ms is not None]
        reported = self._reported.get(turn.idx, (0, 0))
        return replace(
            row, tokens=own, inclusive_calls=row.calls + sum(calls for calls, _, _ in below),
            inclusive_tokens=own + sum(tokens for _, tokens, _ in below),
            inclusive_ms=(row.duration_ms or 0) + sum(took) if took or row.duration_ms is not None else None,
            reported_calls=reported[0], reported_tokens=reported[1],
        )  # fmt: skip

    def _below(self, session: Session, depth: int) -> tuple[int, int, int | None]:
        """Return calls, tokens and time of a subagent with its own subagents."""
        calls = session.n_calls
        tokens = session.tokens_in + session.tokens_out + session.tokens_cache_read + session.tokens_cache_write
        took = session.ended - session.started if session.ended is not None and session.started is not None else None
        if depth < _DEEPEST and session.n_calls:
            for child in lineage(self._store, session).children:
                if child.session is not None and child.session.kind in SUBAGENT_KINDS:
                    more = self._below(child.session, depth + 1)
                    calls, tokens = calls + more[0], tokens + more[1]
        return calls, tokens, took


def _step_tokens(step: Step) -> int:
    return step.tokens_in + step.tokens_out + step.tokens_cache_read + step.tokens_cache_write


def _passes_filter(filters: TurnFilter, tokens: tuple[str, ...], calls: int, failed: bool) -> bool:
    if calls < filters.min_length or (filters.failed and not failed):
        return False
    return filters.pattern is None or fits(filters.pattern, tokens)


def _make_row(session: Session, turn: Turn, calls: list[Call], tokens: tuple[str, ...]) -> TurnRow:
    return TurnRow(
        session.native_id, session.agent, turn.idx + 1, session.kind in SUBAGENT_KINDS, turn.starter, turn.started,
        turn_ms(turn), len(calls), len({call.position for call in calls}), sum(c.status == "error" for c in calls),
        _count_parallel(calls), write_shape(tokens), tuple(dict.fromkeys(map(tool_of, tokens))), bool(turn.compacted),
        bool(turn.interrupted), taken_back=bool(turn.taken_back),
    )  # fmt: skip


def _count_parallel(calls: Iterable[Call]) -> int:
    batches = Counter(call.step for call in calls)
    return sum(size for size in batches.values() if size > 1)


def _make_shape_row(store: Store, tokens: tuple[str, ...], group: _ShapeGroup, total: int) -> ShapeRow:
    return ShapeRow(
        write_shape(tokens), group.n, len(group.sessions), round(group.n / total, 4), round(group.calls / group.n, 2),
        round(group.failed / group.n, 4), int(median(group.times)) if group.times else None,
        handles(store, group.examples),
    )  # fmt: skip
