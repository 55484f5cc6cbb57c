"""Push what you allow to your team's server."""

from __future__ import annotations

from dataclasses import asdict

import click

from everturn.cli import frame
from everturn.text.printable import plural


@frame.command("everturn push", "everturn push --full", "everturn push --again")
@click.option("--full", is_flag=True, help="Do not mask secrets, where your capture rules say `full`.")
@click.option("--again", is_flag=True, help="Push everything anew, for example in another mode.")
def command(cx: frame.CommandContext, full: bool, again: bool) -> int | None:
    """Push the sessions of this machine to your team's server (`everturn team login URL`).

    Your capture rules hold: nothing of a workspace in mode off or structure leaves this machine. Secrets are masked before
    anything is sent. A push continues where the last one stopped. What you have forgotten here is erased there.
    On the server a session is yours alone, unless its project shares what its members push.
    """
    from everturn.capture.policy import policy_of
    from everturn.team.client import TeamClient, load_login
    from everturn.team.upload import Push

    login = load_login(cx.settings.state / "team.json")
    store = cx.store()
    with cx.out.progress("push") as step:
        done = Push(
            store, TeamClient(login), policy_of(cx.settings), cx.settings.machine, full, again,
            lambda number, total, path: step(number, path, total),
        ).run()  # fmt: skip
    if cx.json:
        cx.out.emit_json("push", [], report=asdict(done))
    else:
        cx.out.emit(
            f"{plural(done.files, 'file')}: {done.pushed:,} pushed, {done.same:,} already there, "
            f"{done.left_out:,} left out by your rules, {done.erased:,} erased; {done.bytes / 1e6:,.1f} MB"
        )
    for path, why in done.failed:
        cx.out.warn(f"not pushed {path}: {why}")
    return 4 if done.failed else None
