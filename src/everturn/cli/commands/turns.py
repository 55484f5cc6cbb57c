"""Turns: how long, which tools in which order, what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from everturn.cli import analytics_options, frame
from everturn.text.printable import plural
from everturn.text.times import duration, iso, minute

if TYPE_CHECKING:
    from everturn.analytics.turns import TurnFilter
    from everturn.store.contract import AnalyticsScope


@frame.command(
    "everturn turns --session @last",
    "everturn turns --patterns --since 30d",
    "everturn turns --pattern 'Read → Edit → … → Bash{1+}'",
    "everturn turns --min-length 20 --failed",
    "everturn turns --plot -",
)
@click.option("--patterns", is_flag=True, help="Count the shapes turns have instead of listing turns.")
@click.option("--pattern", default="", metavar="TOOLS", help="Only turns with these tools side by side: 'Read → Edit'.")
@click.option(
    "--min-length", default=1, show_default=True, type=click.IntRange(0), help="Only with at least this many calls."
)
@click.option("--failed", is_flag=True, help="Only with a call that failed.")
@analytics_options.top_option
@analytics_options.plot_option
@analytics_options.options
def command(
    cx: frame.CommandContext,
    patterns: bool,
    pattern: str,
    min_length: int,
    failed: bool,
    top: int,
    plot: str,
    **filters: str,
) -> int:
    """List turns, newest first: how long they took, their tools in order, how many calls failed.

    CALLS are the turn's own; INCLUSIVE has those of the subagents it started too, and REPORTED those of subagents that are
    known only from the results of its calls. --json has the same for tokens and time.

    Two or more calls of a tool in a row are written `Read{2+}`. In a pattern `*` is any tool, `…` any number of them,
    `Read{1+}` one Read or more; `^` and `$` are the ends of the turn.
    """
    from everturn.analytics.turns import TurnFilter, read_pattern

    analytics_options.check_plot(plot)
    wanted = TurnFilter(min_length, read_pattern(pattern) if pattern else None, failed)
    scope = analytics_options.scope_of(cx, **filters)
    if plot:
        from everturn.analytics.plots import turn_lengths

        return analytics_options.draw_plot(cx, scope, turn_lengths(cx.store(), scope), plot)
    return _shapes(cx, scope, wanted, top) if patterns else _list(cx, scope, wanted, top)


def _list(cx: frame.CommandContext, scope: AnalyticsScope, wanted: TurnFilter, top: int) -> int:
    from everturn.analytics.turns import list_turn_rows

    found = list_turn_rows(cx.store(), scope, wanted, top)
    if cx.json:
        cx.out.emit_json("turns", [asdict(one) | {"started": iso(one.started) or None} for one in found])
    elif found:
        known = analytics_options.short_names(cx.store(), found)
        below = any(one.inclusive_calls > one.calls for one in found)
        told = any(one.reported_calls for one in found)
        rows = [
            [
                known[one.agent, one.session], str(one.turn), minute(one.started),
                duration(one.duration_ms), f"{one.calls:,}", *([f"{one.inclusive_calls:,}"] if below else []),
                *([f"{one.reported_calls:,}"] if told else []), f"{one.parallel:,}", f"{one.errors:,}", one.shape,
            ]
            for one in found
        ]  # fmt: skip
        more = (*(["inclusive"] if below else []), *(["reported"] if told else []))
        columns = ("session", "turn", "started", "took", "calls", *more, "parallel", "errors", "tools")
        right = (1, *range(4, len(columns) - 1))
        spare = ("parallel", "errors", *more, "started")
        analytics_options.table(cx, columns, rows, right=right, spare=spare, last=20)
    return 0 if found else _nothing(cx, scope, wanted)


def _shapes(cx: frame.CommandContext, scope: AnalyticsScope, wanted: TurnFilter, top: int) -> int:
    from everturn.analytics.turns import list_shape_rows

    found, different, total = list_shape_rows(cx.store(), scope, wanted, top)
    if cx.json:
        more: dict[str, Any] = {"different": different, "turns": total}
        cx.out.emit_json("turn_patterns", found, **more)
    elif found:
        known = analytics_options.short_names(cx.store(), (one.evidence[0] for one in found if one.evidence))
        rows = [
            [
                f"{one.n:,}", f"{one.sessions:,}", f"{one.calls:.1f}", analytics_options.percent(one.failed),
                duration(one.tool_ms), analytics_options.example_text(one.evidence, known), one.shape,
            ]
            for one in found
        ]  # fmt: skip
        columns = ("turns", "sessions", "calls", "failing", "in tools", "see", "pattern")
        analytics_options.table(cx, columns, rows, right=(0, 1, 2, 3), spare=("in tools", "calls", "sessions"))
        cx.out.say(f"{len(found)} of {plural(different, 'pattern')} in {plural(total, 'turn')}")
    return 0 if found else _nothing(cx, scope, wanted)


def _nothing(cx: frame.CommandContext, scope: AnalyticsScope, wanted: TurnFilter) -> int:
    """Warn that no turn matches, or that the pattern names an unknown tool."""
    from everturn.analytics.inspect import known_tools, similar_tools

    for part in wanted.pattern.parts if wanted.pattern else ():
        if (
            part.tool
            and not known_tools(cx.store(), scope, part.tool)
            and (others := similar_tools(cx.store(), scope, part.tool))
        ):
            cx.out.warn(f"no turn fits, and no tool {part.tool!r} was called; did you mean {', '.join(others)}?")
            return 3
    chosen = wanted.pattern is not None or wanted.min_length > 1 or wanted.failed
    return analytics_options.print_nothing(cx, scope, "no turn fits", chosen)
