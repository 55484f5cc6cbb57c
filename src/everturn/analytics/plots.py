"""Data of plots: tool transitions, turn lengths, errors by position, activity by day.

`plot_drawings` draws them on a terminal, in a file or on a page. Labels are names of tools and dates as they are in the
archive: the drawing makes them safe.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta

from msgspec import Struct

from everturn.analytics import counts
from everturn.analytics.inspect import Inspection
from everturn.model.analytics import EDGE, LAST_POSITION, SLOT_MS
from everturn.store.contract import AnalyticsScope, Store

START, END = "(start)", "(end)"
_TOP = 12  # tools, the most used ones
_LENGTHS = (1, 2, 3, 4, 5, 6, 8, 11, 16, 21, 31, 51, 101)  # lower bounds of the bars of turn lengths


class Heat(Struct, frozen=True, tag=True):
    """A table of numbers; `values[row][column]`."""

    title: str
    across: str  # what the columns are
    down: str  # what the rows are
    rows: list[str]
    columns: list[str]
    values: list[list[int]]


class PlotBar(Struct, frozen=True):
    """One bar; `part` of it is of another colour."""

    label: str
    value: int
    part: int = 0


class Bars(Struct, frozen=True, tag=True):
    """Numbers side by side."""

    title: str
    across: str
    unit: str  # what is counted
    bars: list[PlotBar]
    part: str = ""  # what the other colour means


class Calendar(Struct, frozen=True, tag=True):
    """A number for each day, from the first to the last; days without one are 0."""

    title: str
    unit: str
    first: date
    days: list[int]


Plot = Heat | Bars | Calendar


def transitions(store: Store, scope: AnalyticsScope) -> Heat | None:
    """Return which tool follows which, for the most used tools. Rows are the earlier one."""
    counts.catch_up(store)
    counted = counts.read_counts(store, scope, ("tool_total", "tool_pair"))
    tools = [row.tool for row in counted.tools()[:_TOP]]
    if not tools:
        return None
    n = {(pair.first, pair.second): pair.n for pair in counted.pairs("next")}
    values = [[n.get((first, second), 0) for second in (*tools, EDGE)] for first in (EDGE, *tools)]
    return Heat("Which tool comes after which", "then", "first", [START, *tools], [*tools, END], values)


def turn_lengths(store: Store, scope: AnalyticsScope) -> Bars | None:
    """Return the number of calls in turns."""
    counts.catch_up(store)
    lengths = counts.read_counts(store, scope, ("turn_length",)).lengths()
    n: Counter[int] = Counter()
    failed: Counter[int] = Counter()
    for calls, (turns, with_error) in lengths.items():
        bar = max((start for start in _LENGTHS if start <= calls), default=1)
        n[bar] += turns
        failed[bar] += with_error
    if not n:
        return None
    starts = [start for start in _LENGTHS if start <= max(n)]
    bars = [PlotBar(_range(start), n[start], failed[start]) for start in starts]
    return Bars("How long turns are", "calls in the turn", "turns", bars, "with a failed call")


def errors_by_position(inspection: Inspection) -> Bars:
    """Return the positions of a tool's calls in a turn, and how many of them failed."""
    n = {one.position: one for one in inspection.positions}
    bars = [
        PlotBar(f"{at}+" if at > LAST_POSITION else str(at), n[at].n if at in n else 0, n[at].errors if at in n else 0)
        for at in range(1, max(n, default=0) + 1)
    ]
    title = ", ".join(inspection.tools[:3]) + (", …" if len(inspection.tools) > 3 else "")
    return Bars(f"Where in a turn: {title}", "batch of the turn", "calls", bars, "failed")


def activity_calendar(store: Store, scope: AnalyticsScope) -> Calendar | None:
    """Return the turns of each day, UTC, of the last year with any."""
    counts.catch_up(store)
    n: Counter[date] = Counter()
    for row in store.activity(scope):
        if row.slot >= 0 and row.turns:
            n[day_of(row.slot)] += row.turns
    if not n:
        return None
    last = max(n)
    first = max(min(n), last - timedelta(weeks=53))
    first -= timedelta(days=first.weekday())
    days = [n[first + timedelta(days=number)] for number in range((last - first).days + 1)]
    return Calendar("Activity: turns by day", "turns", first, days)


def calendar_words(plot: Calendar) -> str:
    last = plot.first + timedelta(days=max(len(plot.days) - 1, 0))
    most = max(plot.days, default=0)
    return f"{plot.first} to {last}, {sum(plot.days):,} {plot.unit}, at most {most:,} in a day"


def day_of(slot: int) -> date:
    """Return the day of a quarter of an hour, UTC."""
    try:
        return datetime.fromtimestamp(slot * SLOT_MS / 1000, UTC).date()
    except (OverflowError, ValueError, OSError):  # outside the calendar
        return date.max


def _range(start: int) -> str:
    index = _LENGTHS.index(start)
    if index + 1 == len(_LENGTHS):
        return f"{start}+"
    last = _LENGTHS[index + 1] - 1
    return str(start) if start == last else f"{start}-{last}"
