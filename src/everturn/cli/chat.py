"""Talk with a model: streamed, with tools, every word in the archive, to be taken up again any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from everturn.cli import frame
from everturn.cli.chatting import options

if TYPE_CHECKING:
    from everturn.chat.picking import Choice
    from everturn.chat.talk import Talk

#: What --resume means without a name.
_LAST = "last"


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
    "--resume", "sessions", multiple=True, is_flag=False, flag_value=_LAST, metavar="[ID|N|pick]",
    help="Go on from a session: the newest here, a number of the list, an id. Several: told by their summaries.",
)  # fmt: skip
@click.option("--new", is_flag=True, help="Begin a new session without asking.")
@options
@frame.common
def command(cx: frame.Context, sessions: tuple[str, ...], new: bool, **wanted: Any) -> int | None:
    """Talk with a model of the config, or with an agent of your own, in a workspace.

    Everything said is in the archive before it is acted upon: closing the terminal, a crash or a full window loses nothing.
    /help in the chat lists what can be typed.
    """
    from everturn.chat.talk import Talk
    from everturn.cli.chatting import remember_lines, screen_for, setting_for

    if new and sessions:
        raise click.UsageError("--new and --resume cannot both be meant", click.get_current_context())
    setting, screen = setting_for(cx, wanted), screen_for(cx)
    talk = Talk(setting, screen)
    listed = talk.list()
    remember_lines([one.text.first_prompt for one in reversed(listed) if one.text.first_prompt])
    sessions = _picked(talk, listed) if sessions == ("pick",) or not (sessions or new) else sessions
    if sessions and not taken_up(talk, sessions, "exact", wanted["force"], listed):
        return 1
    talk.run()
    tell(cx, talk)
    return None


def _picked(talk: Talk, listed: list[Choice]) -> tuple[str, ...]:
    """The session that the person points at, when there is any to point at."""
    screen = talk.screen
    if not listed or not screen.is_terminal:
        return ()
    screen.say("Earlier sessions here:\n  0. Start new session")
    screen.say("\n".join(choice.line(screen.width) for choice in listed))
    answer = screen.choose("Which one? (Enter: new) ", "0")
    return () if answer == "0" else (answer,)


def taken_up(
    talk: Talk, names: tuple[str, ...], strategy: str, force: bool, listed: list[Choice] | None = None
) -> bool:
    """Take the sessions up, numbers being those of the list; False when the person does not want to."""
    from everturn.chat.picking import named
    from everturn.chat.strategies import Declined, take_up

    listed = talk.list() if listed is None else listed
    rows = [named(talk.setting.store, name, listed) for name in names]
    try:
        talk.conversation = take_up(talk.setting, rows, talk.screen, talk.watch, strategy, force)
    except Declined:
        talk.screen.say("Not taken up; nothing was changed.")
        return False
    return True


def tell(cx: frame.Context, talk: Talk) -> None:
    """What was said, with --json."""
    if cx.json:
        session = talk.conversation.journal.session if talk.conversation else None
        items = [
            {"state": one.state, "text": one.text, "requests": one.requests, "usage": one.usage} for one in talk.answers
        ]
        cx.out.emit_json("chat", items, session=session)
