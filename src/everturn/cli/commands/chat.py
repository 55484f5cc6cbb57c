"""Talk with a model: streamed, with tools, every word in the archive, to be resumed at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from everturn.cli import frame
from everturn.cli.chat_session import chat_options, chat_screen, chat_setup, remember_lines

if TYPE_CHECKING:
    from everturn.chat.earlier_sessions import EarlierSession
    from everturn.chat.program import ChatProgram

#: The value of --resume without a name.
_LAST_SESSION = "last"


@frame.command(
    "everturn chat",
    "everturn chat -w ~/project --model local --tools read",
    "everturn chat --resume",
    "everturn chat --resume 3f2a9c --force",
    "echo 'What does this project do?' | everturn chat --new",
)
@click.option(
    "--resume", "sessions", multiple=True, is_flag=False, flag_value=_LAST_SESSION, metavar="[ID|N|pick]",
    help="Continue a session: the newest here, a number of the list, or an id. Several are summarised.",
)  # fmt: skip
@click.option("--new", is_flag=True, help="Start a new session without asking.")
@chat_options
def command(cx: frame.CommandContext, sessions: tuple[str, ...], new: bool, **options: Any) -> int | None:
    """Talk with a model of the config, or with an agent of your own, in a workspace.

    Everything said is in the archive before it is acted upon: closing the terminal, a crash or a full window loses nothing.
    /help in the chat lists what can be typed.
    """
    from everturn.chat.program import ChatProgram

    if new and sessions:
        raise click.UsageError("use --new or --resume, not both", click.get_current_context())
    setup, screen = chat_setup(cx, options), chat_screen(cx)
    program = ChatProgram(setup, screen)
    listed = program.list()
    remember_lines([one.text.first_prompt for one in reversed(listed) if one.text.first_prompt])
    sessions = _pick_session(program, listed) if sessions == ("pick",) or not (sessions or new) else sessions
    if sessions and not take_up_session(program, sessions, "exact", options["force"], listed):
        return 1
    program.run()
    print_conversation(cx, program)
    return None


def _pick_session(program: ChatProgram, listed: list[EarlierSession]) -> tuple[str, ...]:
    """Let the user pick an earlier session; () for a new one."""
    screen = program.screen
    if not listed or not screen.is_terminal:
        return ()
    screen.say("Earlier sessions here:\n  0. Start new session")
    screen.say("\n".join(choice.line(screen.width) for choice in listed))
    answer = screen.choose("Which one? (Enter: new) ", "0")
    return () if answer == "0" else (answer,)


def take_up_session(
    program: ChatProgram, names: tuple[str, ...], strategy: str, force: bool, listed: list[EarlierSession] | None = None
) -> bool:
    """Resume the sessions, numbers being those of the list; return False if the user declines."""
    from everturn.chat.earlier_sessions import find_earlier
    from everturn.chat.identity import ResumptionDeclined
    from everturn.chat.resumption import take_up

    listed = program.list() if listed is None else listed
    rows = [find_earlier(program.setup.store, name, listed) for name in names]
    try:
        program.conversation = take_up(program.setup, rows, program.screen, program.watch, strategy, force)
    except ResumptionDeclined:
        program.screen.say("Not resumed; nothing was changed.")
        return False
    return True


def print_conversation(cx: frame.CommandContext, program: ChatProgram) -> None:
    """Print the answers, with --json."""
    if cx.json:
        session = program.conversation.journal.session if program.conversation else None
        items = [
            {"state": one.state, "text": one.text, "requests": one.requests, "usage": one.usage}
            for one in program.answers
        ]
        cx.out.emit_json("chat", items, session=session)
