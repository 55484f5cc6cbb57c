"""Replay a session: what happened, step by step, in time."""

from __future__ import annotations

import time

import click

from everturn.cli import frame
from everturn.cli.commands.show import turn_range


@frame.command(
    "everturn replay @last",
    "everturn replay 3f2a9c --speed 60 --tools",
    "everturn replay 3f2a9c --turn 4- --speed 0",
    reveal=True,
)
@click.argument("session")
@click.option(
    "--speed", default=20.0, show_default=True, type=click.FloatRange(0), help="How many times faster; 0 does not wait."
)
@click.option(
    "--longest", default=3.0, show_default=True, type=click.FloatRange(0), metavar="SECONDS", help="The longest wait."
)
@click.option("--turn", "turns", default="", metavar="N|N-M|last", help="Only this turn, or these; counted from 1.")
@click.option("--thinking", is_flag=True, help="Include thinking.")
@click.option("--tools", is_flag=True, help="Include tool input and output.")
def command(cx: frame.CommandContext, session: str, speed: float, longest: float, turns: str, **flags: bool) -> None:
    """Show SESSION again as it happened, each step when its time has come. Ctrl-C ends it.

    A pipe and --json do not wait; --json says when each step was.
    """
    from everturn.cli.transcript_printer import PacedPrinter, PrintOptions
    from everturn.sessions.messages import Pace, read_turns

    store = cx.store()
    row = cx.session(session)
    first, last = turn_range(turns, row)
    views = read_turns(store, row, first, last)
    pace = Pace(speed if cx.out.fancy and not cx.json else 0, longest, time.sleep)
    reader = PacedPrinter(cx.out, store, cx.sources, row, PrintOptions(**flags), pace)
    if cx.json:
        cx.out.emit_json("replay", reader.moments(views), **reader.facts())
        return
    reader.print_session(views)
