"""Continue a session: in its own agent, in another one, or in a chat."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from everturn.cli import frame
from everturn.cli.chat_session import chat_options, chat_screen, chat_setup
from everturn.cli.commands.chat import print_conversation, take_up_session
from everturn.errors import BadConfig, UnknownSession

if TYPE_CHECKING:
    from everturn.model.archive import Session

#: Strategies of a chat; the others need an agent's own program.
_IN_A_CHAT = ("exact", "window", "summary", "document")
_BUDGET = 4_000  # tokens of a document


@frame.command(
    "everturn resume @last",
    "everturn resume 3f2a9c --in AGENT",
    "everturn resume 3f2a9c --upto 12 --print",
    "everturn resume 3f2a9c --strategy summary",
    "everturn resume 3f2a9c 81d0e2",
    "everturn resume 3f2a9c --chain HISTORY.md",
)
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...")
@click.option("--in", "target", default="", metavar="AGENT", help="Open it in this agent, as a new session.")
@click.option(
    "--strategy", type=click.Choice(("native", *_IN_A_CHAT)), default=None,
    help="How to continue; one that does not work falls back to the next and says why.  [default: native where the "
    "agent supports it, else exact]",
)  # fmt: skip
@click.option("--upto", type=click.IntRange(1), metavar="TURN", help="Fork: only up to this turn, as a new session.")
@click.option(
    "--fit", type=click.IntRange(5_000), default=None, metavar="TOKENS",
    help="Leave out the oldest tool output, then the oldest turns, until so many tokens are left.",
)  # fmt: skip
@click.option("--print", "only_print", is_flag=True, help="Make the session, print the command, do not run it.")
@click.option("--dry-run", is_flag=True, help="Write nothing; print what would be done.")
@click.option(
    "--chain", default="", metavar="FILE", help="Only write the session and all it came from into one document."
)
@chat_options
def command(cx: frame.CommandContext, sessions: tuple[str, ...], chain: str, **options: Any) -> int | None:
    """Continue SESSION. Several are summarised for a new chat.

    native: in its agent's own program, or with --in as a new session of another agent, word for word, secrets included; the
    files that are there are never touched. exact: in a chat, every message as it was. window: as much as fits. summary: a
    new session that begins with the summary. document: one that begins with a document made from the records.
    """
    session = None if chain else _find_agent_session(cx, sessions, options)
    if session is not None:
        from everturn.cli.commands.handoff import carry_out_handoff, native_options
        from everturn.resume.handoff import open_session, tell_history
        from everturn.sources.contract import all_sources

        target = native_options(
            cx, session, options["target"], options["upto"], options["workspace"], options["fit"] or 0
        )
        store, sources, strategy = cx.store(), all_sources(), options["strategy"] or "native"
        if strategy in ("window", "summary", "document"):
            why = "" if strategy == "document" else f"{strategy}: only a chat has that → document"
            opening = tell_history(store, sources, session, target, cx.out.clean, _BUDGET, why)
        else:
            opening = open_session(store, sources, session, target, cx.settings.machine)
        return carry_out_handoff(
            cx, session, opening, "tell" if options["dry_run"] else "print" if options["only_print"] else ""
        )
    return _resume_chat(cx, sessions, chain, options)


def _find_agent_session(cx: frame.CommandContext, names: tuple[str, ...], options: dict[str, Any]) -> Session | None:
    """Return the session if it opens in an agent's own program, else None."""
    is_native = bool(
        options["target"] or options["upto"] or options["fit"] or options["only_print"] or options["dry_run"]
    )
    is_native = is_native or options["strategy"] == "native"
    if is_native and len(names) > 1:
        raise click.UsageError("one session at a time can be opened in an agent", click.get_current_context())
    if not is_native and (len(names) > 1 or options["strategy"] or cx.settings.is_missing):
        return None
    try:
        session = cx.session(names[0])
    except UnknownSession:
        if is_native:
            raise
        return None
    source = cx.sources.get(session.agent)
    return session if is_native or (source is not None and source.native is not None) else None


def _check_sessions(cx: frame.CommandContext, names: tuple[str, ...]) -> None:
    """Raise UnknownSession for a name that fits no session of the archive."""
    for name in names:
        cx.session(name)


def _resume_chat(
    cx: frame.CommandContext, sessions: tuple[str, ...], chain: str, options: dict[str, Any]
) -> int | None:
    from everturn.chat.program import ChatProgram

    try:
        setup, screen = chat_setup(cx, options), chat_screen(cx)
    except BadConfig:
        if not chain and not cx.settings.is_missing:
            _check_sessions(cx, sessions)  # an unknown session says more than a missing model
        raise
    program = ChatProgram(setup, screen)
    if chain:
        from everturn.chat.earlier_sessions import chain_text, find_earlier, write_private

        texts = [chain_text(setup, find_earlier(setup.store, name, program.list())) for name in sessions]
        write_private(Path(chain), ["\n\n".join(texts)])
        cx.out.say(f"wrote {chain}")
        return None
    if not take_up_session(program, sessions, options["strategy"] or "exact", options["force"]):
        return 1
    program.run()
    print_conversation(cx, program)
    return None
