"""Suggestions: tools worth having, calls that fail first, tools that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everturn.cli import analysing, frame

if TYPE_CHECKING:
    from everturn.analyse.suggest import Suggestion


@click.command(
    epilog=frame.examples(
        "everturn suggest", "everturn suggest --since 30d", "everturn suggest --workspace shop --json"
    )
)
@analysing.top_option
@analysing.options
@frame.common
def command(cx: frame.Context, top: int, **filters: str) -> int:
    """Say what the way agents work suggests: sequences worth one command, tools that always go together, calls that mostly
    fail first and what then works, and tools that are called but do not exist.

    Each comes with what it would save and with turns to look at (`everturn show SESSION --turn N`).
    """
    from everturn.analyse.suggest import suggest

    scope = analysing.scope_of(cx, **filters)
    found = suggest(cx.store(), scope, top)[:top]
    if cx.json:
        cx.out.emit_json("suggest", found)
    for one in found if not cx.json else ():
        _tell(cx, one)
    return 0 if found else analysing.nothing(cx, scope, "nothing stands out")


def _tell(cx: frame.Context, one: Suggestion) -> None:
    from everturn.cli.wording import Pen, counted
    from everturn.derive.times import duration

    out, pen = cx.out, Pen(cx.out)
    lost = f", {duration(one.saved_ms)} of waiting" if one.saved_ms >= 1000 else ""
    out.emit(f"{pen('bold', out.text(_sentence(one)))}")
    out.emit(
        pen("dim", f"  saves {counted(one.saved_calls, 'call')}{lost}; seen in {counted(one.sessions, 'session')}")
    )
    if one.evidence:
        places = "; ".join(f"everturn show {out.text(place.session)} --turn {place.turn}" for place in one.evidence)
        out.emit(pen("dim", f"  {places}"))


def _sentence(one: Suggestion) -> str:
    """What was seen, and what to do."""
    path = " → ".join(one.tools)
    if one.kind == "sequence":
        return f"{path}: {one.n:,} times, {one.lift:,.1f} times more than by chance. One command could do it."
    if one.kind == "pair":
        return f"{path}: {analysing.percent(one.share)} of the rarer one's calls, {one.n:,} times. Make them one."
    if one.kind == "fails first":
        then = f"; {one.instead} worked next" if one.instead else ""
        return f"{path}: its first call failed in {one.n:,} of {one.sessions:,} sessions{then}. Say how it is to be called."
    meant = f"Name it like {one.instead}, or say so." if one.instead else "There is none like it."
    return f"{path}: called {one.n:,} times, does not exist. {meant}"
