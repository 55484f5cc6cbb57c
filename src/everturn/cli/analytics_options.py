"""Options and output that the analytics commands share: the scope, plots, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from everturn.cli import frame
from everturn.cli.output import Pen
from everturn.text.folders import FOLDER_RULE
from everturn.text.printable import count_cells

if TYPE_CHECKING:
    from everturn.analytics.counts import TrailHandle
    from everturn.analytics.plots import Plot
    from everturn.analytics.turns import TurnRow
    from everturn.store.contract import AnalyticsScope, Store

#: The options of the scope; their values go to `scope_of`.
options = frame.with_options((
    click.option("--since", default="", metavar="WHEN", help="Only sessions active since then: 2026-01-31, 7d, yesterday."),
    click.option("--agent", default="", metavar="NAME", help="Only of this agent; `everturn sources` lists them."),
    click.option("--workspace", default="", metavar="FOLDER", help=FOLDER_RULE),
    click.option("--session", default="", metavar="ID", help="Only this session (any unique prefix, @last, @-2)."),
    click.option(
        "--subagents", default="inclusive", show_default=True, type=click.Choice(["own", "inclusive"]),
        help="Leave out what subagents did, or count it too.",
    ),
))  # fmt: skip

plot_option = click.option(
    "--plot", default="", metavar="FILE", help="Draw it: into a file .svg or .html, or here in the terminal with -."
)
top_option = click.option(
    "--top", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many to show."
)

Names = dict[tuple[str, str], str]


# scope ----------------------------------------------------------------------------------------------------------------
def scope_of(cx: frame.CommandContext, session: str, subagents: str, **filters: str) -> AnalyticsScope:
    """Return the scope of the options, with its counts brought up to date."""
    from everturn.analytics import counts
    from everturn.store.contract import AnalyticsScope

    store, also = cx.store(), subagents == "inclusive"
    session_filter = cx.filter(**filters) if any(filters.values()) else None
    only = counts.family_ids(store, cx.session(session), also) if session else None
    cx.update_counts(store)
    return AnalyticsScope(session_filter, only, also)


def print_nothing(cx: frame.CommandContext, scope: AnalyticsScope, what: str, limited: bool = False) -> int:
    """Warn that there is no result and return the exit code; `limited` if more than the scope may be the reason."""
    cx.out.warn(f"{what}; {empty_hint(scope, limited)}")
    return 3


def empty_hint(scope: AnalyticsScope, limited: bool = False) -> str:
    everything = scope.everything and scope.subagents and not limited
    return "`everturn sync` looks for sessions" if everything else "remove a filter"


# plots ----------------------------------------------------------------------------------------------------------------
def draw_plot(cx: frame.CommandContext, scope: AnalyticsScope, plot: Plot | None, where: str) -> int:
    """Write a plot to a file, or to the terminal for `-`; with --json print its data."""
    if plot is None:
        if cx.json:
            cx.out.emit_json("plot", [], file=None)
        return print_nothing(cx, scope, "there is nothing to draw")
    if where == "-":
        if not cx.json:
            sketch_plot(cx, plot)
    else:
        from everturn.analytics.plot_drawings import plot_page, plot_svg

        text = plot_svg(plot) if Path(where).suffix.lower() == ".svg" else plot_page([plot])
        try:
            Path(where).write_text(text, encoding="utf-8")
        except OSError as failure:
            raise click.UsageError(f"--plot {where}: {failure.strerror or 'it cannot be written'}") from failure
        cx.out.say(f"drawn: {where}")
    if cx.json:
        cx.out.emit_json("plot", [plot], file=where if where != "-" else None)
    return 0


def sketch_plot(cx: frame.CommandContext, plot: Plot) -> None:
    from everturn.analytics.plot_drawings import Sketch

    for line in Sketch(cx.out.width, Pen(cx.out).on, cx.out.text).lines(plot):
        cx.out.emit(line)


def check_plot(where: str) -> None:
    """Validate --plot before any work is done. Raises click.UsageError."""
    if where and where != "-" and Path(where).suffix.lower() not in (".svg", ".html", ".htm"):
        raise click.UsageError(f"--plot {where}: give a file that ends in .svg or .html, or - for the terminal")


# text -----------------------------------------------------------------------------------------------------------------
def percent(share: float) -> str:
    """Return `12 %`; a share above zero is never shown as `0 %`."""
    return "0 %" if not share else "<1 %" if share < 0.01 else f"{100 * share:.0f} %"


def short_names(store: Store, seen: Iterable[TrailHandle | TurnRow]) -> Names:
    """Return the shortest unique id of each session, by agent and id."""
    from everturn.sessions.lookup import best_match, short_ids

    keys = dict.fromkeys((one.agent, one.session) for one in seen)
    rows = {key: best_match(editions) for key in keys if (editions := store.sessions_of(*key))}
    shorts = short_ids(rows.values(), store)
    return {key: shorts[rows[key].id] if key in rows else key[1] for key in keys}


def example_text(found: Sequence[TrailHandle], known: Names) -> str:
    """Return the first example, and how many more: `3f2a9c11 turn 4 +2`."""
    if not found:
        return ""
    more = f" +{len(found) - 1}" if len(found) > 1 else ""
    return f"{known[found[0].agent, found[0].session]} turn {found[0].turn}{more}"


def print_sentence(cx: frame.CommandContext, text: str, style: str = "", indent: str = "  ") -> None:
    """Print a sentence, wrapped on a terminal with `indent` before the following lines."""
    pen, safe = Pen(cx.out), cx.out.text(text)
    room = max(cx.out.width, 20) if cx.out.fancy else max(len(safe), 1)
    for line in wrap(safe, room, subsequent_indent=indent, break_on_hyphens=False):
        cx.out.emit(pen(style, line) if style else line)


def table(
    cx: frame.CommandContext,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Iterable[int],
    spare: Sequence[str],
    last: int = 16,
) -> None:
    """Print a table; on a narrow terminal drop `spare` columns until `last` cells remain for a last text column."""
    numbers, kept = set(right), list(range(len(columns)))
    wide = [max(map(count_cells, column)) for column in zip(columns, *rows, strict=True)]
    if len(columns) - 1 not in numbers:
        wide[-1] = min(wide[-1], last)
    for name in spare if cx.out.fancy else ():
        if sum(wide[number] + 2 for number in kept) - 2 <= cx.out.width:
            break
        kept.remove(columns.index(name))
    cx.out.table(
        [columns[number] for number in kept],
        [[row[number] for number in kept] for row in rows],
        right=[place for place, number in enumerate(kept) if number in numbers],
    )
