"""One tool: what comes before and after it, where it fails, how long it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everturn.cli import analytics_options, frame
from everturn.text.printable import cut_cells, plural
from everturn.text.times import duration

if TYPE_CHECKING:
    from everturn.analytics.inspect import Inspection, ParallelUse, ToolNeighbour

_ROWS = 8


@frame.command(
    "everturn inspect Bash",
    "everturn inspect 'mcp__*' --since 30d",
    "everturn inspect Edit --turns",
    "everturn inspect Bash --plot errors.svg",
)
@click.argument("tool")
@click.option("--turns", "by_turn", is_flag=True, help="Also where in a turn it is called, and fails.")
@analytics_options.plot_option
@analytics_options.options
def command(cx: frame.CommandContext, tool: str, by_turn: bool, plot: str, **filters: str) -> int:
    """Look at TOOL: how often, beside what, after what, how long it takes and how it fails.

    TOOL may have wildcards (`mcp__*`); then the numbers of all tools that fit are summed.
    """
    from everturn.analytics.inspect import inspect_tools, similar_tools

    analytics_options.check_plot(plot)
    scope = analytics_options.scope_of(cx, **filters)
    found = inspect_tools(cx.store(), scope, tool)
    if found is None:
        if cx.json:
            cx.out.emit_json("inspect", [])
        others = ", ".join(similar_tools(cx.store(), scope, tool))
        if others:
            hint = f"did you mean {others}?"
        else:
            hint = (
                "`everturn paths --turns` lists the tools" if scope.everything else analytics_options.empty_hint(scope)
            )
        cx.out.warn(f"no call of a tool {tool!r}; {hint}")
        return 3
    if plot:
        from everturn.analytics.plots import errors_by_position

        return analytics_options.draw_plot(cx, scope, errors_by_position(found), plot)
    if cx.json:
        cx.out.emit_json("inspect", [found])
    else:
        _print_inspection(cx, found, by_turn)
    return 0


def _print_inspection(cx: frame.CommandContext, found: Inspection, by_turn: bool) -> None:
    shown = ", ".join(found.tools[:6]) + (f", … ({len(found.tools)} tools)" if len(found.tools) > 6 else "")
    analytics_options.print_sentence(cx, shown, "bold")
    where = f"{plural(found.turns, 'turn')}, {plural(found.sessions, 'session')}"
    facts = [
        ("calls", f"{found.n:,} ({analytics_options.percent(found.share)} of all), {'at least ' * (len(found.tools) > 1)}{where}"),
        ("failed", f"{found.errors:,} ({analytics_options.percent(found.error_rate)}), {found.retries:,} tried again"),
        ("took", f"median {duration(found.p50_ms)}, p95 {duration(found.p95_ms)}" if found.timed else ""),
        ("parallel", analytics_options.percent(found.parallel)),
        ("repeated", _repeated_text(found.repeated)),
        ("position", f"{found.position:.1f} in its turn on average"),
        ("errors", ", ".join(f"{one.error_class.replace('_', ' ')} {one.n:,}" for one in found.failures)),
    ]  # fmt: skip
    for name, fact in facts:
        if fact:
            analytics_options.print_sentence(cx, f"  {name:<10}{fact}", indent=" " * 12)
    for title, beside, edge in (
        ("Before it, and how often it failed then", found.before, "(the turn begins)"),
        ("After it, and how often that failed", found.after, "(the turn ends)"),
        ("Beside it, in one batch", found.beside, ""),
        ("After it failed", found.after_failure, "(the turn ends)"),
    ):
        _print_neighbours(cx, title, beside, edge)
    if by_turn:
        from everturn.analytics.plots import errors_by_position

        cx.out.emit()
        analytics_options.sketch_plot(cx, errors_by_position(found))


def _repeated_text(found: ParallelUse) -> str:
    """Return whether calls of the tool beside each other fail more often than its calls do anyway."""
    if not found.pairs:
        return ""
    seen = f"{plural(found.pairs, 'pair')} in one batch, {analytics_options.percent(found.rate)} with a failure"
    if found.verdict == "too few":
        return f"{seen}; too few to say more"
    usual = f"{analytics_options.percent(found.expected)} expected"
    more = "a sign of confusion" if found.verdict == "fail more often" else "no sign of confusion"
    return f"{seen}, {usual}: {more}"


def _print_neighbours(cx: frame.CommandContext, title: str, beside: list[ToolNeighbour], edge: str) -> None:
    from everturn.analytics.plot_drawings import Sketch

    if not beside:
        return
    out, sketch = cx.out, Sketch(cx.out.width, False, cx.out.text)
    out.emit(f"\n{title}")
    for one in beside[:_ROWS]:
        name = out.text(one.tool or edge)
        failing = f"  {one.errors:,} failed" if one.errors else ""
        line = f"  {one.n:>7,}  {analytics_options.percent(one.share):>5}  {sketch.bar(one.share, 1, 16):<16}  {name}{failing}"
        out.emit(cut_cells(line, out.width) if out.fancy else line)
    if len(beside) > _ROWS:
        out.emit(f"  {sum(one.n for one in beside[_ROWS:]):>7,}         {'':<16}  {len(beside) - _ROWS} more")
