"""Suggestions: tools worth having, calls that fail first, tools that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everturn.cli import analytics_options, frame
from everturn.text.printable import plural
from everturn.text.times import duration

if TYPE_CHECKING:
    from everturn.analytics.suggest import Suggestion


_LONG = 36  # letters of an id: that of a UUID


@frame.command("everturn suggest", "everturn suggest --since 30d", "everturn suggest --workspace shop --json")
@analytics_options.top_option
@analytics_options.options
def command(cx: frame.CommandContext, top: int, **filters: str) -> int:
    """Say what the way agents work suggests: sequences worth one command, tools that always go together, calls that mostly
    fail first and what then works, and tools that are called but do not exist.

    Each comes with what it would save and with turns to look at (`everturn show SESSION --turn N`).
    """
    from everturn.analytics.suggest import find_suggestions

    scope = analytics_options.scope_of(cx, **filters)
    found = find_suggestions(cx.store(), scope, top)[:top]
    if cx.json:
        cx.out.emit_json("suggest", found)
    elif found:
        known = analytics_options.short_names(cx.store(), (place for one in found for place in one.evidence))
        for one in found:
            _print_item(cx, one, known)
    return 0 if found else analytics_options.print_nothing(cx, scope, "nothing stands out")


def _print_item(cx: frame.CommandContext, one: Suggestion, known: analytics_options.Names) -> None:
    lost = f", {duration(one.saved_ms)} of waiting" if one.saved_ms >= 1000 else ""
    analytics_options.print_sentence(cx, _sentence(one), "bold")
    saving = f"saves {plural(one.saved_calls, 'call')}{lost}; seen in {plural(one.sessions, 'session')}"
    analytics_options.print_sentence(cx, f"  {saving}", "dim")
    if one.evidence:
        places = [(known[place.agent, place.session], place.turn) for place in one.evidence]
        first, *others = sorted(
            places, key=lambda place: len(place[0]) > _LONG
        )  # one that can be typed, if there is one
        also = "".join(f", {name} turn {turn}" for name, turn in others if len(name) <= _LONG)
        analytics_options.print_sentence(cx, f"  everturn show {first[0]} --turn {first[1]}{also}", "dim")


def _sentence(one: Suggestion) -> str:
    from everturn.derive.turns import ODD_NAME

    path = " → ".join(one.tools)
    if one.kind == "sequence":
        return f"{path}: {one.n:,} times, {one.lift:,.1f} times more than by chance. One command could do it."
    if one.kind == "pair":
        return (
            f"{path}: {analytics_options.percent(one.share)} of the rarer one's calls, {one.n:,} times. Make them one."
        )
    if one.kind == "fails first":
        then = f"; {one.instead} worked next" if one.instead else ""
        return f"{path}: its first call failed in {one.n:,} of {plural(one.sessions, 'session')}{then}. Document how to call it."
    times = plural(one.n, "time")
    if path == ODD_NAME:
        return f"{path}: called {times} with an unknown tool name."
    meant = f"Name it like {one.instead}, or say so." if one.instead else "There is none like it."
    return f"{path}: called {times}, does not exist. {meant}"
