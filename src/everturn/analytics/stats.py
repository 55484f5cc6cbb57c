"""Work and cost over time: by day, week or month, and by agent, model or workspace.

Work and tokens count when they happened, not when their session began. Each call and each response is counted once, in the
session that made it. A workspace is shown by its key, which groups without naming. Work (turns, calls) has no model of its
own: by model it belongs to the model of its session's last response.

"Sessions" are what lists show: main sessions, each once, whatever versions and copies there are of it. A period has those that
did something in it, themselves or by an older version.

Three counts are kept apart: what main sessions did themselves (`own`), that and what subagents did (`inclusive`), and what
subagents did according to their parents although their own transcripts are not in the archive (`reported`). Reported work
is in no other count: nobody can check it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import date, timedelta
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from everturn.analytics import counts
from everturn.analytics.cost import Cost, Prices, token_cost
from everturn.analytics.plots import day_of
from everturn.model.analytics import COUNTED_KINDS, SLOT_MS, ActivityRow, UsageRow
from everturn.model.archive import Session
from everturn.store.contract import AnalyticsScope, SessionFilter, Store

PERIODS = ("day", "week", "month")
KEYS = ("agent", "model", "workspace")
UNDATED = ""  # the period of work without a known time
_SLOTS_A_DAY = 96
_TOP = 10
_ALL = 1 << 31


class Period(Struct, frozen=True):
    """A stretch of time, or all of it; `key` is what it is grouped by."""

    period: str  # 2026-01-31 | 2026-W05 | 2026-01; empty where no time is known, and for a total
    key: str
    sessions: int  # as lists show them: main sessions, each once
    turns: int
    prompts: int  # turns that a human began
    calls: int
    errors: int
    busy_ms: int  # together, what its turns took
    responses: int
    tokens_in: int
    tokens_out: int
    tokens_cache_read: int
    tokens_cache_write: int
    cost: Cost


class WorkTotal(Struct, frozen=True):
    """Calls and tokens of sessions."""

    sessions: int  # those that did something, subagents included where they are counted
    calls: int
    tokens: int  # of every kind, cached ones included


class TakenBackTotal(Struct, frozen=True):
    """Turns that a person took back by going back before them, and their calls: part of every other count."""

    sessions: int = 0
    turns: int = 0
    calls: int = 0
    errors: int = 0


class UseTotal(Struct, frozen=True):
    """A tool, or a class of errors, over all of the time."""

    name: str
    n: int
    errors: int


class Stats(Struct, frozen=True):
    items: list[Period]  # oldest first
    total: Period
    subagents: Cost  # the part of the total that subagents cost
    inherited_tokens: int  # what forks repeat: counted where it was made, never here
    tools: list[UseTotal]
    errors: list[UseTotal]
    prices_as_of: str
    own: WorkTotal  # of main sessions
    inclusive: WorkTotal  # of main sessions and subagents
    reported: WorkTotal  # of subagents that are known only from their parents' calls; in no other count
    taken_back: TakenBackTotal = TakenBackTotal()


def count_stats(store: Store, scope: AnalyticsScope, prices: Prices, period: str = "month", by: str = "") -> Stats:
    """Return the statistics of a scope; with `since` in it, only what happened since then."""
    counts.catch_up(store)
    since = (scope.sessions.since if scope.sessions else None) or 0
    every_activity = store.activity(scope)
    activity = [row for row in every_activity if _is_after(row.slot, since)]
    usage = [row for row in store.usage(scope) if _is_after(row.slot, since)]
    own = [row for row in usage if not row.inherited]
    of_main = own if not scope.subagents else _of_main(scope, own, store.usage)
    main_sessions = {row.session for row in of_main}
    reported = [row for row in store.reported(scope) if not since or (row.at or 0) >= since]
    gone = [turn for turn in store.taken_back_turns(scope) if not since or (turn.started or 0) >= since]
    sums = _sum_periods(activity, own, _period_namer(period), _key_getter(by, _sessions(store) if by else {}))
    listed = _ListedSessions(store, scope)
    for one in sums.values():
        one.sessions = listed.main(one.sessions)
    counted = counts.read_counts(store, scope, ("tool_total", "tool_failure"))
    failures: Counter[str] = Counter()
    for (_, error_class), (failed, _) in counted.failures().items():
        failures[error_class] += failed
    return Stats(
        [_make_period(*key, sums[key], prices) for key in sorted(sums)],
        replace(_make_period(UNDATED, "", _add_sums(sums.values()), prices), sessions=listed.count()),
        token_cost((row for row in own if row.session not in main_sessions), prices),
        sum(_tokens(row) for row in usage if row.inherited),
        [UseTotal(row.tool, row.n, row.errors) for row in counted.tools()[:_TOP]],
        [UseTotal(name, n, n) for name, n in sorted(failures.items(), key=lambda item: (-item[1], item[0]))],
        prices.as_of,
        _total_work(activity if not scope.subagents else _of_main(scope, activity, store.activity), of_main, listed),
        _total_work(activity, own, listed),
        WorkTotal(len(reported), sum(row.calls for row in reported), sum(row.tokens for row in reported)),
        TakenBackTotal(
            len({turn.session for turn in gone}),
            len(gone),
            sum(turn.n_calls for turn in gone),
            sum(turn.n_errors for turn in gone),
        ),
    )


class _ListedSessions:
    """Which sessions lists show for the rows of a scope. Notes beside a session may hold its tokens; they are no session."""

    def __init__(self, store: Store, scope: AnalyticsScope) -> None:
        self._store, self._scope = store, scope
        self._rows = {} if scope.only == () else store.listed_sessions(scope.only or ())
        # A subagent that was chosen by its id is the session that was asked for.
        is_subagent = scope.only is not None and all(one.kind != "main" for one in self._rows.values())
        self._main_kinds = COUNTED_KINDS if is_subagent else ("main",)

    def main(self, rows: Iterable[int]) -> set[int]:
        return self._select(rows, self._main_kinds)

    def all(self, rows: Iterable[int]) -> set[int]:
        return self._select(rows, COUNTED_KINDS)

    def count(self) -> int:
        """Return how many sessions a list with the filter of the scope has."""
        if self._scope.only is not None:
            return len(self.main(self._scope.only))
        session_filter = self._scope.sessions or SessionFilter()
        return self._store.count_sessions(replace(session_filter, kinds=("main",), states=("current",)))

    def _select(self, rows: Iterable[int], kinds: tuple[str, ...]) -> set[int]:
        found = (self._rows.get(row) for row in rows)
        return {one.session for one in found if one is not None and one.kind in kinds}


class _PeriodSum:
    def __init__(self) -> None:
        self.sessions: set[int] = set()
        self.turns = self.prompts = self.calls = self.errors = self.busy_ms = 0
        self.usage: list[UsageRow] = []

    def add(self, row: ActivityRow) -> None:
        self.sessions.add(row.session)
        self.add_counts(row)

    def add_counts(self, other: ActivityRow | _PeriodSum) -> None:
        for name in ("turns", "prompts", "calls", "errors", "busy_ms"):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def _sum_periods(
    activity: Iterable[ActivityRow],
    usage: Iterable[UsageRow],
    name: Callable[[int], str],
    key: Callable[[int, str], str],
) -> dict[tuple[str, str], _PeriodSum]:
    sums: dict[tuple[str, str], _PeriodSum] = defaultdict(_PeriodSum)
    names: dict[int, str] = {}  # the period of each day, computed once

    def sum_at(slot: int, session: int, model: str) -> _PeriodSum:
        day = slot // _SLOTS_A_DAY
        if day not in names:
            names[day] = name(slot)
        return sums[names[day], key(session, model)]

    for row in activity:
        sum_at(row.slot, row.session, "").add(row)
    for spent in usage:
        total = sum_at(spent.slot, spent.session, spent.model)
        total.usage.append(spent)
        total.sessions.add(spent.session)
    return sums


def _add_sums(sums: Iterable[_PeriodSum]) -> _PeriodSum:
    whole = _PeriodSum()
    for one in sums:
        whole.sessions |= one.sessions
        whole.usage += one.usage
        whole.add_counts(one)
    return whole


_Row = TypeVar("_Row", ActivityRow, UsageRow)


def _of_main(scope: AnalyticsScope, rows: Iterable[_Row], read: Callable[[AnalyticsScope], list[_Row]]) -> list[_Row]:
    """Return the rows of main sessions."""
    main = {row.session for row in read(replace(scope, subagents=False))}
    return [row for row in rows if row.session in main]


def _total_work(activity: Iterable[ActivityRow], usage: Iterable[UsageRow], listed: _ListedSessions) -> WorkTotal:
    rows, spent = list(activity), list(usage)
    sessions = listed.all({row.session for row in rows} | {row.session for row in spent})
    return WorkTotal(len(sessions), sum(row.calls for row in rows), sum(map(_tokens, spent)))


def _make_period(name: str, key: str, of: _PeriodSum, prices: Prices) -> Period:
    rows = of.usage
    return Period(
        name, key, len(of.sessions), of.turns, of.prompts, of.calls, of.errors, of.busy_ms,
        sum(row.responses for row in rows), sum(row.tokens_in for row in rows), sum(row.tokens_out for row in rows),
        sum(row.tokens_cache_read for row in rows), sum(row.tokens_cache_write for row in rows), token_cost(rows, prices),
    )  # fmt: skip


def periods_between(first: str, last: str, period: str) -> list[str]:
    """Return the names of all periods from `first` to `last`, also of those without any work."""
    beginning = {"day": first, "week": f"{first}-1", "month": f"{first}-01"}[period]
    day, found = date.fromisoformat(beginning), [first]
    while found[-1] < last:
        day += timedelta(days=7 if period == "week" else 1)
        if (name := _period_name(day, period)) != found[-1]:
            found.append(name)
    return found


def _period_namer(period: str) -> Callable[[int], str]:
    return lambda slot: UNDATED if slot < 0 else _period_name(day_of(slot), period)


def _period_name(day: date, period: str) -> str:
    if period == "week":
        year, week, _ = day.isocalendar()
        return f"{year}-W{week:02d}"
    return day.isoformat() if period == "day" else day.isoformat()[:7]


def _key_getter(by: str, known: dict[int, Session]) -> Callable[[int, str], str]:
    def key(session: int, model: str) -> str:
        row = known.get(session)
        if not by or row is None:
            return ""
        return row.agent if by == "agent" else row.workspace_key if by == "workspace" else model or row.model

    return key


def _sessions(store: Store) -> dict[int, Session]:
    every = SessionFilter(kinds=(), states=())
    return {row.id: row for row, _ in store.sessions(every, _ALL)[0]}


def _is_after(slot: int, since: int) -> bool:
    return slot * SLOT_MS + SLOT_MS > since if since else True


def _tokens(row: UsageRow) -> int:
    return row.tokens_in + row.tokens_out + row.tokens_cache_read + row.tokens_cache_write
