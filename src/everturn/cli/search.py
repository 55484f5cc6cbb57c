"""Find messages by their words, in everything that was said or done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from everturn import clock
from everturn.cli import frame
from everturn.model.words import FIELDS, ORIGINS

if TYPE_CHECKING:
    from everturn.cli.output import Output
    from everturn.cli.wording import Pen
    from everturn.recall.search import Filters, Found

_ROLES = {"user": ("human", "agent"), "assistant": ("model",)}


@click.command(
    epilog=frame.examples(
        "everturn search parse error",
        "everturn search '\"exact phrase\" -without prefix*'",
        "everturn search timeout --in tool_output --since 7d",
        "everturn search migration --session @last --role human",
    )
)
@click.argument("words", nargs=-1, required=True)
@click.option("--agent", default="", metavar="NAME", help="Only in sessions of this agent.")
@click.option("--workspace", default="", metavar="PART", help="Only where the working folder holds this.")
@click.option("--session", default="", metavar="SESSION", help="Only in this session: an id, its beginning, @last.")
@click.option("--since", default="", metavar="WHEN", help="Only messages since then: 2026-01-31, 7d, yesterday.")
@click.option("--until", default="", metavar="WHEN", help="Only messages before then.")
@click.option("--in", "fields", multiple=True, type=click.Choice(FIELDS), help="Only in these parts; may be repeated.")
@click.option(
    "--role",
    "roles",
    multiple=True,
    type=click.Choice([*ORIGINS, *_ROLES]),
    help="Only by this speaker; may be repeated.",
)
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many matches to show.")
@click.option("--after", default="", metavar="CURSOR", help="Go on where an earlier search ended.")
@frame.common(reveal=True)
def command(cx: frame.Context, words: tuple[str, ...], limit: int, after: str, **options: Any) -> int:
    """Find messages that hold all WORDS, in prompts, answers, thinking, tool input and tool output.

    A word may be a "quoted phrase", pre*, or -unwanted; OR joins alternatives. What the client put in by itself is left out while
    there is anything else; when no message holds all the words, those that hold some are shown. A line says so.
    """
    from everturn.derive.redact import redact
    from everturn.recall.search import search
    from everturn.sources import all_sources

    filters = _filters(cx, **options)
    page = search(
        cx.store(), all_sources(), " ".join(words), filters, limit, after, clean=None if cx.reveal else redact
    )
    if cx.json:
        cx.out.emit_json("search", map(_facts, page.items), page.next, note=page.note or None)
    else:
        _tell(cx.out, page.items)
    if page.note:
        cx.out.warn(page.note)
    if not page.items:
        cx.out.warn(_nothing(filters, after))
        return 3
    if page.next and not cx.json:
        cx.out.say(f"there are more: add --after {page.next}")
    return 0


def _filters(
    cx: frame.Context, agent: str, workspace: str, session: str, since: str, until: str, fields: tuple[str, ...],
    roles: tuple[str, ...],
) -> Filters:  # fmt: skip
    from everturn.derive.times import parse_when
    from everturn.recall.search import Filters
    from everturn.recall.sessions import resolve

    now = clock.now()
    return Filters(
        agent=agent,
        workspace=workspace,
        session=resolve(cx.store(), session) if session else None,
        since=parse_when(since, now) if since else None,
        until=parse_when(until, now) if until else None,
        fields=fields,
        origins=tuple(origin for role in roles for origin in _ROLES.get(role, (role,))),
    )


def _tell(out: Output, items: list[Found]) -> None:
    from everturn.cli.wording import Pen, folder, in_one_line
    from everturn.derive.times import iso
    from everturn.recall.sessions import short_ids

    pen = Pen(out)
    shorts = short_ids(found.session for found in items)
    groups: dict[int, list[Found]] = {}
    for found in items:
        groups.setdefault(found.session.id, []).append(found)
    for number, (session_id, group) in enumerate(groups.items()):
        session, text = group[0].session, group[0].text
        about = in_one_line(out, text.title or text.first_prompt, 80)
        older = "" if session.state == "current" else "older edition"
        facts = " · ".join(
            filter(None, (session.agent, iso(session.ended)[:10], out.text(folder(text.workspace)), older))
        )
        out.emit(("\n" if number else "") + f"{pen('bold', out.text(shorts[session_id]))}  {about}".rstrip())
        out.emit("  " + pen("dim", facts))
        for found in group:
            out.emit(f"  {_place(found, pen)}  {marked(out, pen, found)}")


def _place(found: Found, pen: Pen) -> str:
    if found.row is None:
        return pen("cyan", found.field.replace("_", " "))
    return pen("cyan", f"turn {found.row.turn + 1}") + pen(
        "dim", f" #{found.row.seq + 1} {found.field.replace('_', ' ')}"
    )


def marked(out: Output, pen: Pen, found: Found) -> str:
    """The snippet with its matches marked: in colour on a terminal, «so» elsewhere."""
    shown, at = [], 0
    text = found.snippet
    for start, end in found.spans:
        match = out.text(text[start:end], " ")
        shown += [out.text(text[at:start], " "), pen("match", match) if pen.on else f"«{match}»"]
        at = end
    return "".join((*shown, out.text(text[at:], " ")))


def _facts(found: Found) -> dict[str, Any]:
    from everturn.export.facts import when

    row, session = found.row, found.session
    return {
        "session": session.native_id,
        "agent": session.agent,
        "kind": session.kind,
        "state": session.state,
        "title": found.text.title or None,
        "workspace": found.text.workspace or None,
        "turn": None if row is None else row.turn + 1,
        "message": None if row is None else row.seq + 1,
        "role": None if row is None else row.role,
        "origin": None if row is None else row.origin,
        "field": found.field,
        "at": None if row is None else when(row.at),
        "score": round(found.score, 4),
        "snippet": found.snippet,
        "spans": [list(span) for span in found.spans],
    }


def _nothing(filters: Filters, after: str) -> str:
    from everturn.recall.search import Filters

    if after:
        return "there are no more matches"
    if filters == Filters():
        return "nothing found; try fewer or other words, a beginning like pars*, or `everturn sync` first"
    return "nothing found; leave out a filter, or try fewer words or a beginning like pars*"
