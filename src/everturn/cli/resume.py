"""Go on from a session: itself, or a new one that is told what the old one was about."""

from __future__ import annotations

from typing import Any

import click

from everturn.cli import frame
from everturn.cli.chatting import options


@click.command(
    epilog=frame.examples(
        "everturn resume @last",
        "everturn resume 3f2a9c --strategy summary",
        "everturn resume 3f2a9c 81d0e2",
        "everturn resume 3f2a9c --chain HISTORY.md",
    )
)
@click.argument("sessions", nargs=-1, required=True, metavar="SESSION...")
@click.option(
    "--strategy", type=click.Choice(("exact", "window", "summary", "document")), default="exact", show_default=True,
    help="Where to begin; each that does not work falls to the next, with its reason.",
)  # fmt: skip
@click.option(
    "--chain", default="", metavar="FILE", help="Only write the session and all it came from into one document."
)
@options
@frame.common
def command(cx: frame.Context, sessions: tuple[str, ...], strategy: str, chain: str, **wanted: Any) -> int | None:
    """Take SESSION up again and go on talking. Several are told to a new one by their summaries.

    exact: every message as it was. window: as much as fits. summary: a new session that begins with the summary. document:
    one that begins with a document made from the records. A session of another program is told by summary or document.
    """
    from everturn.chat.talk import Talk
    from everturn.cli.chat import taken_up, tell
    from everturn.cli.chatting import screen_for, setting_for

    setting, screen = setting_for(cx, wanted), screen_for(cx)
    talk = Talk(setting, screen)
    if chain:
        _write_chain(cx, talk, sessions, chain)
        return None
    if not taken_up(talk, sessions, strategy, wanted["force"]):
        return 1
    talk.run()
    tell(cx, talk)
    return None


def _write_chain(cx: frame.Context, talk: Any, sessions: tuple[str, ...], target: str) -> None:
    from pathlib import Path

    from everturn.chat.picking import named
    from everturn.chat.saved import chain_text, put

    texts = [chain_text(talk.setting, named(talk.setting.store, name, talk.list())) for name in sessions]
    put(Path(target), "\n\n".join(texts))
    cx.out.say(f"wrote {target}")
