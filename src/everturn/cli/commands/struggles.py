"""Struggles: the same failure again and again, and what ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everturn.cli import analytics_options, frame
from everturn.text.printable import plural
from everturn.text.times import duration

if TYPE_CHECKING:
    from everturn.analytics.struggles import Kind


@frame.command(
    "everturn struggles",
    "everturn struggles --since 7d --least 5",
    "everturn struggles --session @last --json",
)
@click.option("--least", default=3, show_default=True, type=click.IntRange(2), help="The fewest failures in a row.")
@analytics_options.top_option
@analytics_options.options
def command(cx: frame.CommandContext, least: int, top: int, **filters: str) -> int:
    """Show where agents failed again and again: one tool, one class of error, no success in between; and how it ended.

    What a human rejected or stopped does not count.
    """
    from everturn.analytics.struggles import find_struggles, group_kinds

    scope, store = analytics_options.scope_of(cx, **filters), cx.store()
    found = group_kinds(store, find_struggles(store, scope, least))[:top]
    if cx.json:
        cx.out.emit_json("struggles", found)
    elif found:
        known = analytics_options.short_names(store, (place for one in found for place in one.evidence))
        for one in found:
            _print_item(cx, one, known)
    return 0 if found else analytics_options.print_nothing(cx, scope, "no struggle was found")


def _print_item(cx: frame.CommandContext, one: Kind, known: analytics_options.Names) -> None:
    name = f"{one.tool}: {one.error_class.replace('_', ' ')}"
    lost = f", {duration(one.lost_ms)} lost" if one.lost_ms >= 1000 else ""
    runs = f"{plural(one.failures, 'failure')} in {plural(one.n, 'run')}, the longest {one.longest}"
    analytics_options.print_sentence(cx, f"{name}: {runs}, {plural(one.sessions, 'session')}{lost}", "bold")
    analytics_options.print_sentence(
        cx, f"  ended: {', '.join(f'{ending} {n}' for ending, n in one.endings.items())}", indent="    "
    )
    for path, n in one.recoveries:
        analytics_options.print_sentence(cx, f"  continued with {path} ({n})", indent="    ")
    for place in one.evidence:
        analytics_options.print_sentence(
            cx, f"  everturn show {known[place.agent, place.session]} --turn {place.turn} --tools", "dim"
        )
