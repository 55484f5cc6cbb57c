"""Tell another agent what a session was about, and start it."""

from __future__ import annotations

import click

from everturn.cli import frame


@click.command(
    epilog=frame.examples(
        "everturn handoff @last --in AGENT",
        "everturn handoff 3f2a9c --in AGENT --budget 2000",
        "everturn handoff 3f2a9c --in AGENT --print",
    )
)
@click.argument("session", metavar="SESSION")
@click.option("--in", "agent", required=True, metavar="AGENT", help="The agent that takes over.")
@click.option(
    "--budget", type=click.IntRange(400), default=4_000, show_default=True, metavar="TOKENS",
    help="How long the document may be.",
)  # fmt: skip
@click.option(
    "-w", "--workspace", type=click.Path(exists=True, file_okay=False), metavar="DIR",
    help="The folder to go on in; else that of the session.",
)  # fmt: skip
@click.option("--print", "only_print", is_flag=True, help="Print the command, do not run it.")
@frame.common(reveal=True)
def command(
    cx: frame.CommandContext, session: str, agent: str, budget: int, workspace: str | None, only_print: bool
) -> int | None:
    """Start AGENT with a document about SESSION as its first prompt: what was asked, done and left open, with evidence.

    No model is asked for it. What does not fit is reached by recall. The same as `everturn resume --strategy document`.
    """
    from everturn.cli.handoff_options import carry_out, wanted_for
    from everturn.resume.handoff import tell_history
    from everturn.sessions.lookup import resolve_session
    from everturn.sources.contract import all_sources

    store = cx.store()
    found = resolve_session(store, session)
    wanted = wanted_for(cx, found, agent, None, workspace)
    opening = tell_history(store, all_sources(), found, wanted, cx.out.clean, budget)
    return carry_out(cx, found, opening, "print" if only_print else "")
