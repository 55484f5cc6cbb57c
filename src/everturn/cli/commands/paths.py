"""Paths: which tools follow each other more often than chance explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everturn.cli import analytics_options, frame
from everturn.text.printable import plural

if TYPE_CHECKING:
    from everturn.analytics.paths import Paths
    from everturn.store.contract import AnalyticsScope


@frame.command(
    "everturn paths",
    "everturn paths --since 30d --top 50",
    "everturn paths --all --workspace myproject",
    "everturn paths --turns",
    "everturn paths --plot transitions.svg",
)
@click.option("--all", "everything", is_flag=True, help="Include paths that chance explains; most frequent first.")
@click.option("--turns", "by_turn", is_flag=True, help="Where in a turn each tool is used instead.")
@analytics_options.top_option
@analytics_options.plot_option
@analytics_options.options
def command(cx: frame.CommandContext, everything: bool, by_turn: bool, top: int, plot: str, **filters: str) -> int:
    """Find the paths agents follow: two to six tools in a row, seen more often than the same tools in any order would be.

    LIFT is how many times more often. A step written `Read{2+}` mostly is several calls in a row. Parts of a longer path are
    left out.
    """
    analytics_options.check_plot(plot)
    scope = analytics_options.scope_of(cx, **filters)
    if plot:
        from everturn.analytics.plots import transitions

        return analytics_options.draw_plot(cx, scope, transitions(cx.store(), scope), plot)
    if by_turn:
        return _print_positions(cx, scope, top)
    from everturn.analytics.path_counts import LEAST_SUPPORT
    from everturn.analytics.paths import find_paths

    found = find_paths(cx.store(), scope, top, everything)
    if cx.json:
        cx.out.emit_json(
            "paths", found.items, sessions=found.sessions, turns=found.turns, calls=found.calls, sampled=found.sampled
        )
    elif found.items:
        _print_paths(cx, found, scope.subagents)
    if found.items:
        return 0
    if not found.calls or everything:
        what = f"no two tools follow each other {LEAST_SUPPORT} times" if found.calls else "there are no tool calls"
        return analytics_options.print_nothing(cx, scope, what)
    calls = plural(found.calls, "call")
    cx.out.warn(f"no path in {calls} is more than chance explains; --all shows the most frequent ones")
    return 3


def _print_paths(cx: frame.CommandContext, found: Paths, subagents: bool) -> None:
    rows = [
        [f"{one.n:,}", f"{one.sessions:,}", f"{one.lift:,.1f}", f"{one.position:.1f}", f"{one.errors:,}", one.path]
        for one in found.items
    ]
    columns = ("seen", "sessions", "lift", "position", "failing", "path")
    analytics_options.table(cx, columns, rows, right=range(5), spare=("failing", "position"), last=30)
    turns, sessions = plural(found.turns, "turn"), plural(found.sessions, "session")
    cx.out.say(f"in {plural(found.calls, 'call')} of {turns}, {sessions}{' (subagents included)' * subagents}")


def _print_positions(cx: frame.CommandContext, scope: AnalyticsScope, top: int) -> int:
    from everturn.analytics.paths import list_positions

    found = list_positions(cx.store(), scope, top)
    if cx.json:
        cx.out.emit_json("places", found)
    elif found:
        rows = [
            [
                f"{one.calls:,}", f"{one.turns:,}", f"{one.sessions:,}", f"{one.position:.1f}",
                analytics_options.percent(one.first), analytics_options.percent(one.last), analytics_options.percent(one.parallel), one.tool,
            ]
            for one in found
        ]  # fmt: skip
        columns = ("calls", "turns", "sessions", "position", "first", "last", "parallel", "tool")
        analytics_options.table(cx, columns, rows, right=range(7), spare=("parallel", "sessions", "last"))
    return 0 if found else analytics_options.print_nothing(cx, scope, "there are no tool calls")
