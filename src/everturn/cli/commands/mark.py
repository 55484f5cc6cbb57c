"""Give a session a title, a star or a note of your own."""

from __future__ import annotations

import click
from msgspec.structs import asdict

from everturn import clock
from everturn.cli import frame


@frame.command(
    "everturn mark @last --star",
    "everturn mark 3f2a9c --title 'The parser, second try' --note 'the fix is in turn 12'",
    "everturn mark 3f2a9c --title '' --no-star",
    "everturn mark @last",
    reveal=True,
)
@click.argument("session")
@click.option("--title", metavar="TEXT", help="Set the title; an empty one restores the original.")
@click.option("--star/--no-star", default=None, help="Star the session, or remove the star.")
@click.option("--note", metavar="TEXT", help="Set a note; an empty one removes it.")
def command(cx: frame.CommandContext, session: str, title: str | None, star: bool | None, note: str | None) -> None:
    """Put a title, a star or a note on SESSION; without any of them say what is on it.

    They are kept apart from what is derived from transcripts: no rebuild touches them. `everturn web` shows them.
    """
    from everturn.sessions.lookup import marks_of, put_marks

    store = cx.store()
    found = cx.session(session)
    if (title, star, note) == (None, None, None):
        marks = marks_of(store, found)
    else:
        marks = put_marks(store, found, clock.now(), title, star, note)
    if cx.json:
        cx.out.emit_json("marks", [{"session": found.native_id, "agent": found.agent, **asdict(marks)}])
        return
    cx.out.emit(f"{'★' if marks.star else '☆'} {cx.out.text(marks.title) or '(no title)'}")
    if marks.note:
        cx.out.emit(cx.out.text(marks.note, "\n\t"))
