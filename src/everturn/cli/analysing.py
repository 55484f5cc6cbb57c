"""What the commands that ask how tools are used have in common: which sessions, how plots are shown, how counts are told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from everturn import clock
from everturn.cli import frame

if TYPE_CHECKING:
    from everturn.analyse.plane import Scope
    from everturn.analyse.plots import Plot
    from everturn.analyse.tracks import Handle

_OPTIONS = (
    click.option("--since", default="", metavar="WHEN", help="Only sessions active since then: 2026-01-31, 7d, yesterday."),
    click.option("--agent", default="", metavar="NAME", help="Only of this agent; `everturn sources` lists them."),
    click.option("--workspace", default="", metavar="PART", help="Only where the working folder holds this."),
    click.option("--session", default="", metavar="ID", help="Only this session (any unique beginning, @last, @-2)."),
    click.option(
        "--subagents", default="inclusive", show_default=True, type=click.Choice(["own", "inclusive"]),
        help="Leave out what subagents did, or count it too.",
    ),
)  # fmt: skip

plot_option = click.option(
    "--plot", default="", metavar="FILE", help="Draw it: into a file .svg or .html, or here in the terminal with -."
)
top_option = click.option(
    "--top", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many to show."
)


def options(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Which sessions; the values go to `scope_of`."""
    for option in reversed(_OPTIONS):
        handler = option(handler)
    return handler


def scope_of(cx: frame.Context, since: str, agent: str, workspace: str, session: str, subagents: str) -> Scope:
    """The sessions that are meant, with their counts brought up to date."""
    from everturn.analyse import plane
    from everturn.analyse.tracks import family
    from everturn.derive.times import parse_when
    from everturn.recall.sessions import resolve
    from everturn.store import SessionFilter

    store, also = cx.store(), subagents == "inclusive"
    at = parse_when(since, clock.now()) if since else None
    only = family(store, resolve(store, session), also) if session else None
    with cx.out.progress("counting") as step:
        plane.catch_up(store, lambda done, _: step(done))
    wanted = SessionFilter(agent=agent, workspace=workspace, since=at) if agent or workspace or at is not None else None
    return plane.Scope(wanted, only, also)


def nothing(cx: frame.Context, scope: Scope, what: str) -> int:
    """Say that there is no answer."""
    limited = not scope.everything or not scope.subagents
    hint = "take away a filter" if limited else "`everturn sync` looks for sessions"
    cx.out.warn(f"{what}; {hint}")
    return 3


def draw(cx: frame.Context, plots: Iterable[Plot | None], where: str) -> int:
    """Put plots into a file, or on the terminal where it is `-`."""
    drawn = [plot for plot in plots if plot is not None]
    if not drawn:
        cx.out.warn("there is nothing to draw; `everturn sync` looks for sessions")
        return 3
    if where == "-":
        _sketch(cx, drawn)
        return 0
    from everturn.analyse.charts import page, svg

    path = Path(where)
    text = svg(drawn[0]) if path.suffix.lower() == ".svg" else page(drawn)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as failure:
        raise click.UsageError(f"--plot {where}: {failure.strerror or 'it cannot be written'}") from failure
    cx.out.say(f"drawn: {path}")
    return 0


def check_plot(where: str) -> None:
    """Before any work is done for it."""
    if where and where != "-" and Path(where).suffix.lower() not in (".svg", ".html", ".htm"):
        raise click.UsageError(f"--plot {where}: give a file that ends in .svg or .html, or - for the terminal")


def percent(share: float) -> str:
    """`12 %`; what is not nothing is never shown as nothing."""
    return "0 %" if not share else "<1 %" if share < 0.01 else f"{100 * share:.0f} %"


def look_up(found: Sequence[Handle]) -> str:
    """Where to see it: `3f2a9c11 turn 4`, the first of them."""
    if not found:
        return ""
    more = f" +{len(found) - 1}" if len(found) > 1 else ""
    return f"{short(found[0].session)} turn {found[0].turn}{more}"


def short(native_id: str) -> str:
    """Enough of an id to be typed, and told apart from most."""
    head, slash, tail = native_id.rpartition("/")
    return tail if slash and head else native_id[:13].rstrip("-")


def _sketch(cx: frame.Context, drawn: list[Plot]) -> None:
    from everturn.analyse.sketches import Sketch
    from everturn.cli.wording import Pen

    sketch = Sketch(cx.out.width, Pen(cx.out).on, cx.out.text)
    for number, plot in enumerate(drawn):
        if number:
            cx.out.emit()
        for line in sketch.lines(plot):
            cx.out.emit(line)
