"""Find sessions whose process died, and resume them."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from everturn.cli import frame

if TYPE_CHECKING:
    from everturn.loop.recovery import RecoveredSession, UnfinishedSession
    from everturn.store.contract import Store


@frame.command(
    "everturn recover", "everturn recover --with agent:loop", "everturn recover --with agent:loop --every 30"
)
@click.option("--with", "program", metavar="MODULE:NAME", help="A `Loop` of yours, or a function that returns one.")
@click.option("--every", type=click.FloatRange(min=0.1), metavar="SECONDS", help="Repeat until stopped.")
def command(cx: frame.CommandContext, program: str | None, every: float | None) -> None:
    """List the sessions of durable loops whose process died; with a program, resume them.

    NAME is a `Loop`, or a function that gets the state of a session and returns its `Loop`, or None to leave it alone. The
    module is looked for in the current folder first. Any number of workers may run at the same time: each session is
    resumed by one of them. Calls that wait for a human stay waiting.
    """
    from everturn.loop.recovery import unfinished_sessions

    if every is not None and program is None:
        raise click.UsageError("--every needs --with: without a program there is nothing to do again")
    if program is None:
        _show_unfinished(cx, list(unfinished_sessions(cx.store())))
        return
    loop_for = _load_program(program)
    store = _open_durable(cx)
    try:
        while True:
            _recover_all(cx, store, loop_for)
            if every is None:
                return
            time.sleep(every)
    finally:
        store.close()


def _open_durable(cx: frame.CommandContext) -> Store:
    from everturn.loop.journal import open_archive

    cx.store()  # says so if there is none, and brings it up to date
    return open_archive(cx.settings.db)


def _recover_all(cx: frame.CommandContext, store: Store, loop_for: Any) -> None:
    from everturn.loop.recovery import recover

    done = []
    for one in recover(store, loop_for):
        done.append(one)
        if not cx.json:
            cx.out.emit(_recovered_line(one))
    if cx.json:
        rows = [{"session": one.session, "state": one.outcome.state, "waiting": list(one.waiting)} for one in done]
        cx.out.emit_json("recover", rows)
    elif not done:
        cx.out.say("no session is left to resume")


def _recovered_line(one: RecoveredSession) -> str:
    why = f": {one.outcome.error}" if one.outcome.error else f": {', '.join(one.waiting)}" if one.waiting else ""
    return f"{one.session}  {one.outcome.state}{why}"


def _show_unfinished(cx: frame.CommandContext, found: list[UnfinishedSession]) -> None:
    if cx.json:
        cx.out.emit_json("recover", [asdict(one) for one in found])
        return
    for one in found:
        parts = [f"in doubt: {', '.join(one.in_doubt)}"] if one.in_doubt else []
        parts += [f"not started: {', '.join(one.not_started)}"] if one.not_started else []
        state = "; ".join(parts) or ("answered, not closed" if one.is_answered else "waits for the model")
        cx.out.emit(f"{one.session}  {cx.out.text(state)}  {cx.out.text(one.workspace)}".rstrip())
    if found:
        cx.out.say("resume them with your own program: `everturn recover --with MODULE:NAME`")
    else:
        cx.out.say("no session is unfinished: every process that ran one ended in order or is still running")


def _load_program(name: str) -> Any:
    from everturn.loop.loop import Loop

    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise click.UsageError("--with needs MODULE:NAME, such as agent:loop")
    sys.path.insert(0, "")
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as failure:
        raise click.UsageError(f"--with {name}: {failure}") from failure
    if isinstance(found, Loop):
        return lambda past: found
    if not callable(found):
        raise click.UsageError(f"--with {name}: it is neither a Loop nor a function")
    return found
