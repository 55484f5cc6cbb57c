"""Tell another agent what a session was about, and start it."""

from __future__ import annotations

import os
import subprocess
import sys
from shutil import which
from typing import TYPE_CHECKING, Any

import click

from everturn import clock
from everturn.cli import frame
from everturn.errors import EverturnError, UsageError

if TYPE_CHECKING:
    from everturn.model.archive import Session
    from everturn.resume.handoff import Handoff, NativeOptions

_MANY_TOKENS = 100_000
_FULL = 0.8  # of a context window: the agent adds its own instructions and the next answers


@frame.command(
    "everturn handoff @last --in AGENT",
    "everturn handoff 3f2a9c --in AGENT --budget 2000",
    "everturn handoff 3f2a9c --in AGENT --print",
    reveal=True,
)
@click.argument("session", metavar="SESSION")
@click.option("--in", "agent", required=True, metavar="AGENT", help="The agent that takes over.")
@click.option(
    "--budget", type=click.IntRange(400), default=4_000, show_default=True, metavar="TOKENS",
    help="How long the document may be.",
)  # fmt: skip
@click.option(
    "-w", "--workspace", type=click.Path(exists=True, file_okay=False), metavar="DIR",
    help="The folder to continue in. Default: the session's own.",
)  # fmt: skip
@click.option("--print", "only_print", is_flag=True, help="Print the command, do not run it.")
def command(
    cx: frame.CommandContext, session: str, agent: str, budget: int, workspace: str | None, only_print: bool
) -> int | None:
    """Start AGENT with a document about SESSION as its first prompt: what was asked, done and left open, with evidence.

    No model is asked for it. What does not fit is reached by recall. The same as `everturn resume --strategy document`.
    """
    from everturn.resume.handoff import tell_history

    store = cx.store()
    found = cx.session(session)
    options = native_options(cx, found, agent, None, workspace)
    opening = tell_history(store, cx.sources, found, options, cx.out.clean, budget)
    return carry_out_handoff(cx, found, opening, "print" if only_print else "")


# --- shared with `resume` ---


def native_options(
    cx: frame.CommandContext, session: Session, agent: str, upto: int | None, workspace: str | None, fit: int = 0
) -> NativeOptions:
    from everturn.resume.handoff import NativeOptions, agent_named, recorded_workspace

    target = agent_named(cx.sources, agent or session.agent)
    original = recorded_workspace(cx.store(), cx.sources, session)
    folder = os.path.realpath(workspace) if workspace else ""
    if not folder and not os.path.isdir(original):
        folder = os.getcwd()
        cx.out.warn(f"the session's folder does not exist ({original or 'unknown'}); it continues in {folder}")
    return NativeOptions(
        target=target,
        places=cx.places(),
        random=clock.new_id(),
        now=clock.now(),
        folder=cx.settings.data / "handed-over",
        workspace="" if folder == original else folder,
        upto=upto - 1 if upto is not None else None,
        fit=fit,
    )


def carry_out_handoff(cx: frame.CommandContext, session: Session, opening: Handoff, only: str = "") -> int:
    """Write the native session and run the agent; only `print` the command, or only `tell` what would be written."""
    from everturn.resume.handoff import put_back, show_command, write_native

    for note in opening.notes:
        cx.out.say(note)
    _say_size(cx, session, opening)
    for one in opening.originals:
        cx.out.say(f"{'would restore' if only == 'tell' else 'restores'} {one.path} ({one.size:,} bytes)")
    if only != "tell":
        put_back(cx.store(), opening.originals)
    if opening.plan is not None:
        size = len(opening.plan.content)
        cx.out.say(f"{'would write' if only == 'tell' else 'writes'} {opening.plan.path} ({size:,} bytes)")
        if only != "tell":
            write_native(cx.store(), session, opening.plan)
    if cx.json:
        cx.out.emit_json("resume", [_handoff_item(opening)])
        return 0
    if only:
        cx.out.emit(cx.out.text(show_command(opening), "\n\t"))
        return 0
    return _run_commands(cx, opening)


def _say_size(cx: frame.CommandContext, session: Session, opening: Handoff) -> None:
    """Say how many tokens the agent sends with the next prompt, and how to send fewer."""
    if not opening.tokens:
        return
    what = "document" if opening.way == "document" else "conversation"
    cx.out.say(
        f"the {what} has about {opening.tokens:,} tokens, which {opening.source.title} sends with the next prompt"
    )
    window = opening.source.native.window if opening.source.native is not None else 0
    if window and opening.tokens > window * _FULL and opening.way != "document":
        fit = round(window * _FULL, -4)
        cx.out.warn(f"that may be more than its model accepts; to leave out the oldest: add --fit {fit:.0f}")
    if opening.tokens > _MANY_TOKENS and opening.way != "document":
        cx.out.say(f"to begin with a short document instead: everturn resume {session.native_id} --strategy document")


def _handoff_item(opening: Handoff) -> dict[str, Any]:
    plan = opening.plan
    return {
        "way": opening.way,
        "agent": opening.source.name,
        "session": plan.new.id if plan is not None else None,
        "path": str(plan.path) if plan is not None else None,
        "put_back": [str(one.path) for one in opening.originals],
        "workspace": opening.workspace,
        "commands": opening.commands,
        "notes": opening.notes,
        "tokens": opening.tokens or None,
    }


def _run_commands(cx: frame.CommandContext, opening: Handoff) -> int:
    """Run the commands in the workspace; the last one replaces this process where the system allows it."""
    from everturn.resume.handoff import show_command

    programs = [which(command[0]) for command in opening.commands]
    if not all(programs):
        cx.out.emit(cx.out.text(show_command(opening), "\n\t"))
        raise EverturnError(
            f"{opening.commands[-1][0]} is not installed here; run the line above where it is installed"
        )
    cx.store().close()
    try:
        os.chdir(opening.workspace or ".")
    except OSError as failure:
        raise UsageError(
            f"cannot change to {opening.workspace}: {failure.strerror}; name another with --workspace"
        ) from failure
    commands = [[program or "", *command[1:]] for program, command in zip(programs, opening.commands, strict=True)]
    for command in commands[:-1]:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, check=False)
        if done.returncode:
            raise EverturnError(f"`{' '.join(command)}` failed ({done.returncode}); the file is kept, run it again")
    return _replace_process(commands[-1])


def _replace_process(command: list[str]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        os.execv(command[0], command)  # noqa: S606  the person's own agent, by the path that was just found
    return subprocess.run(command, check=False).returncode
