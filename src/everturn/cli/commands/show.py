"""Read a session, turn by turn."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from everturn.cli import frame
from everturn.cli.output import open_pager
from everturn.errors import NothingFound
from everturn.text.times import iso

if TYPE_CHECKING:
    from everturn.model.archive import Session
    from everturn.sessions.messages import Sources
    from everturn.store.contract import Store

_TURNS = re.compile(r"(?P<first>[1-9][0-9]{0,8})(?:-(?P<last>[1-9][0-9]{0,8})?)?")


@frame.command(
    "everturn show @last",
    "everturn show 3f2a9c --turn 4-6 --tools",
    "everturn show 3f2a9c --turn last --thinking",
    "everturn show 3f2a9c --raw-message 12",
    "everturn show 3f2a9c --summaries",
    "everturn show 3f2a9c --file src/app.py --at 4",
    reveal=True,
)
@click.argument("session")
@click.option("--turn", "turns", default="", metavar="N|N-M|last", help="Only this turn, or these; counted from 1.")
@click.option("--thinking", is_flag=True, help="Include thinking.")
@click.option("--tools", is_flag=True, help="Include tool input and output.")
@click.option("--context", is_flag=True, help="Include context that the client added.")
@click.option("--full", is_flag=True, help="Show long texts in full.")
@click.option("--version", "number", type=click.IntRange(1), metavar="N", help="As it was in this version of its file.")
@click.option(
    "--raw-message", type=click.IntRange(1), metavar="N", help="Only the record of message N as it was captured."
)
@click.option("--summaries", is_flag=True, help="Only what models have written about it, and whether it still holds.")
@click.option("--file", "path", default="", metavar="PATH", help="Only this file, as it was when turn --at began.")
@click.option("--at", "at_turn", default="end", metavar="N|last|end", help="The turn of --file; by default the end.")
def command(
    cx: frame.CommandContext,
    session: str,
    turns: str,
    number: int | None,
    raw_message: int | None,
    summaries: bool,
    path: str,
    at_turn: str,
    **flags: bool,
) -> None:
    """Read SESSION: prompts, answers and tool calls in order, with what ran in parallel, failed or was interrupted.

    SESSION is an id, any unique prefix, the slug that the agent gave it, @last, or @-2 for the one before.

    --file shows a file that the session changed, as it was when a turn began: from the copy that the agent made,
    the text that the next edit found, or the edits before.
    """
    from everturn.cli.transcript_printer import PrintOptions, TranscriptPrinter
    from everturn.sessions.lookup import session_edition
    from everturn.sessions.messages import read_turns

    store, sources = cx.store(), cx.sources
    row = cx.session(session)
    if number is not None:
        row = session_edition(store, row, number)
    if summaries:
        _tell_summaries(cx, store, row)
        return
    if path:
        _show_file(cx, store, sources, row, path, at_turn)
        return
    if raw_message is not None:
        _tell_record(cx, store, sources, row, raw_message - 1)
        return
    first, last = turn_range(turns, row)
    reader = TranscriptPrinter(cx.out, store, sources, row, PrintOptions(**flags))
    views = read_turns(store, row, first, last)
    if cx.json:
        cx.out.emit_json("show", map(reader.turn_facts, views), **reader.facts())
        return
    with open_pager(cx.out):
        reader.print_session(views)


def turn_range(turns: str, session: Session) -> tuple[int, int | None]:
    """Return the first and last turn of the option, counted from 0."""
    if not turns:
        return 0, None
    asked = _TURNS.fullmatch(str(max(session.n_turns, 1)) if turns == "last" else turns)
    if asked is None:
        raise click.UsageError(
            f"--turn {turns}: give a number, a range like 3-5 or 3-, or `last`", click.get_current_context()
        )
    first = int(asked["first"]) - 1
    if first >= session.n_turns:
        has = f"{session.n_turns} turn{'' if session.n_turns == 1 else 's'}"
        raise NothingFound(f"session {session.native_id} has {has}; there is no turn {first + 1}")
    return first, int(asked["last"]) - 1 if asked["last"] else None if turns.endswith("-") else first


def _show_file(
    cx: frame.CommandContext, store: Store, sources: Sources, session: Session, path: str, at_turn: str
) -> None:
    from everturn.attribution.file_history import file_at_turn

    turn = session.n_turns if at_turn == "end" else turn_range(at_turn, session)[0]
    found = file_at_turn(store, sources, session, path, turn)
    if cx.json:
        cx.out.emit_json("file", [found], session=session.native_id)
        return
    if found.text is None:
        raise NothingFound(f"there was no {found.path} then: {found.evidence}")
    cx.out.say(f"{found.path}: {found.evidence}")
    cx.out.emit(cx.out.text(found.text.removesuffix("\n"), "\n\t"))


def _tell_summaries(cx: frame.CommandContext, store: Store, session: Session) -> None:
    from everturn.restore.job import is_stale, kept_summaries

    found = kept_summaries(store, session)
    if not found:
        raise NothingFound(
            f"no model has summarised session {session.native_id}; `everturn restore {session.native_id} --model NAME` does it"
        )
    facts = [{"at_text": iso(one.at), "stale": is_stale(session, one), "summary": one} for one in found]
    if cx.json:
        cx.out.emit_json("summaries", facts, session=session.native_id)
        return
    for fact, one in zip(facts, found, strict=True):
        state = "stale: the session has continued since" if fact["stale"] else "up to date"
        covers = f"turns 1-{one.turns}, messages 1-{one.last_seq + 1}"
        cx.out.emit(cx.out.text(f"{fact['at_text']}  {one.model}  prompts {one.prompt_version}  {covers}  ({state})"))
        cx.out.emit(f"\n{cx.out.text(one.text, chr(10) + chr(9))}")


def _tell_record(cx: frame.CommandContext, store: Store, sources: Sources, session: Session, seq: int) -> None:
    from everturn.export.json_document import record_item
    from everturn.sessions.messages import Records

    row = next(store.messages(session.id, seq, seq), None)
    if row is None:
        raise NothingFound(
            f"session {session.native_id} has {session.n_messages} messages; there is no message {seq + 1}"
        )
    record = Records(store, sources, session, until=0).record(row)
    if not record:
        raise NothingFound(f"the bytes of session {session.native_id} were not kept; only its structure is there")
    if cx.json:
        cx.out.emit_json("record", [record_item(row, record)])
    else:
        cx.out.emit(cx.out.text(record.decode("utf-8", "replace"), "\n\t"))
