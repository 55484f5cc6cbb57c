"""Talk with a model: streamed, with tools, every word in the archive, to be taken up again any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from everturn.cli import frame
from everturn.cli.chat_session import options

if TYPE_CHECKING:
    from everturn.chat.earlier_sessions import EarlierSession
    from everturn.chat.program import ChatProgram

#: What --resume means without a name.
_LAST_SESSION = "last"


@click.command(
    epilog=frame.examples(
        "everturn chat",
        "everturn chat -w ~/project --model local --tools read",
        "everturn chat --resume",
        "everturn chat --resume 3f2a9c --force",
        "echo 'What does this project do?' | everturn chat --new",
    )
)
@click.option(
    "--resume", "sessions", multiple=True, is_flag=False, flag_value=_LAST_SESSION, metavar="[ID|N|pick]",
    help="Go on from a session: the newest here, a number of the list, an id. Several: told by their summaries.",
)  # fmt: skip
@click.option("--new", is_flag=True, help="Begin a new session without asking.")
@options
@frame.common
def command(cx: frame.CommandContext, sessions: tuple[str, ...], new: bool, **wanted: Any) -> int | None:
    """Talk with a model of the config, or with an agent of your own, in a workspace.

    Everything said is in the archive before it is acted upon: closing the terminal, a crash or a full window loses nothing.
    /help in the chat lists what can be typed.
    """
    from everturn.chat.program import ChatProgram
    from everturn.cli.chat_session import remember_lines, screen_for, setting_for

    if new and sessions:
        raise click.UsageError("--new and --resume cannot both be meant", click.get_current_context())
    setting, screen = setting_for(cx, wanted), screen_for(cx)
    talk = ChatProgram(setting, screen)
    listed = talk.list()
    remember_lines([one.text.first_prompt for one in reversed(listed) if one.text.first_prompt])
    sessions = _pick_session(talk, listed) if sessions == ("pick",) or not (sessions or new) else sessions
    if sessions and not take_up_session(talk, sessions, "exact", wanted["force"], listed):
        return 1
    talk.run()
    print_conversation(cx, talk)
    return None


def _pick_session(talk: ChatProgram, listed: list[EarlierSession]) -> tuple[str, ...]:
    """The session that the person points at, when there is any to point at."""
    screen = talk.screen
    if not listed or not screen.is_terminal:
        return ()
    screen.say("Earlier sessions here:\n  0. Start new session")
    screen.say("\n".join(choice.line(screen.width) for choice in listed))
    answer = screen.choose("Which one? (Enter: new) ", "0")
    return () if answer == "0" else (answer,)


def take_up_session(
    talk: ChatProgram, names: tuple[str, ...], strategy: str, force: bool, listed: list[EarlierSession] | None = None
) -> bool:
    """Take the sessions up, numbers being those of the list; False when the person does not want to."""
    from everturn.chat.earlier_sessions import find_earlier
    from everturn.chat.resumption import ResumptionDeclined, take_up

    listed = talk.list() if listed is None else listed
    rows = [find_earlier(talk.setup.store, name, listed) for name in names]
    try:
        talk.conversation = take_up(talk.setup, rows, talk.screen, talk.watch, strategy, force)
    except ResumptionDeclined:
        talk.screen.say("Not taken up; nothing was changed.")
        return False
    return True


def print_conversation(cx: frame.CommandContext, talk: ChatProgram) -> None:
    """What was said, with --json."""
    if cx.json:
        session = talk.conversation.journal.session if talk.conversation else None
        items = [
            {"state": one.state, "text": one.text, "requests": one.requests, "usage": one.usage} for one in talk.answers
        ]
        cx.out.emit_json("chat", items, session=session)
