"""Push what you allow to your team's server."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from everturn.cli import frame
from everturn.errors import EverturnError
from everturn.text.printable import plural

if TYPE_CHECKING:
    from everturn.store.contract import Store
    from everturn.team.upload import PushReport


@frame.command("everturn push", "everturn push --full", "everturn push --again", "everturn push --limit 500kB")
@click.option("--full", is_flag=True, help="Do not mask secrets, where your capture rules say `full`.")
@click.option("--again", is_flag=True, help="Push everything again, for example in another mode.")
@click.option(
    "--limit", default="", metavar="SIZE", help="Send at most so much a second, such as 500kB. Default: team.limit."
)
def command(cx: frame.CommandContext, full: bool, again: bool, limit: str) -> int | None:
    """Push the sessions of this machine to your team's server (`everturn team login URL`).

    Your capture rules hold: nothing of a workspace in mode off or structure leaves this machine. Secrets are masked before
    anything is sent. A push continues where the last one stopped. What you have forgotten here is erased there.
    On the server a session is yours alone, unless its project shares what its members push.

    `everturn config set team.push masked` pushes after every sync (`full`: without masking, `never`: not);
    `everturn config set team.limit 500kB` limits what a push sends in a second.
    """
    done = _push(cx, cx.store(), full, again, limit)
    line = (
        f"{plural(done.files, 'file')}: {done.pushed:,} pushed, {done.same:,} already there, "
        f"{done.left_out:,} left out by your rules, {done.erased:,} erased; {done.bytes / 1e6:,.1f} MB"
    )
    cx.out.emit_result("push", line, report=asdict(done))
    return 4 if done.failed else None


def push_after_sync(cx: frame.CommandContext, store: Store) -> None:
    """Push if the user is logged in. A failure is a warning: the next sync pushes the rest."""
    if not (cx.settings.state / "team.json").exists():
        return
    try:
        done = _push(cx, store, cx.settings.push == "full", again=False)
    except EverturnError as error:
        cx.out.warn(f"not pushed: {error}")
        return
    if done.bytes or done.erased:
        cx.out.say(f"pushed {done.bytes / 1e6:,.1f} MB of {plural(done.pushed, 'file')}, {done.erased:,} erased")


def _push(cx: frame.CommandContext, store: Store, full: bool, again: bool, limit: str = "") -> PushReport:
    from everturn.capture.policy import policy_of
    from everturn.team.client import TeamClient, load_login
    from everturn.team.limits import UNLIMITED, parse_size
    from everturn.team.upload import Push

    client = TeamClient(
        load_login(cx.settings.state / "team.json"), parse_size(limit or cx.settings.push_limit or UNLIMITED) or 0
    )
    with cx.out.progress("push") as step:
        done = Push(
            store, client, policy_of(cx.settings), cx.settings.machine, full, again,
            lambda number, total, path: step(number, path, total),
        ).run()  # fmt: skip
    for path, why in done.failed:
        cx.out.warn(f"not pushed {path}: {why}")
    return done
