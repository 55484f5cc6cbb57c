"""List sessions, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from everturn import clock
from everturn.cli import frame
from everturn.cli.output import in_one_line, print_session_rows
from everturn.text.folders import FOLDER_RULE
from everturn.text.printable import plural
from everturn.text.times import ago, short_ago

if TYPE_CHECKING:
    from everturn.store.contract import SessionFilter

_ABOUT = 100  # cells of a title in the list of running sessions


@frame.command(
    "everturn sessions",
    "everturn sessions parser --since 7d",
    "everturn sessions --workspace myproject --limit 50",
    "everturn sessions --all --json",
    "everturn sessions --live",
    reveal=True,
)
@click.argument("text", nargs=-1)
@click.option("--agent", default="", metavar="NAME", help="Only of this agent; `everturn sources` lists them.")
@click.option("--workspace", default="", metavar="FOLDER", help=FOLDER_RULE)
@click.option("--owner", default="", metavar="NAME", help="Only of this person.")
@click.option("--machine", default="", metavar="NAME", help="Only of this machine.")
@click.option(
    "--project", default="", metavar="NAME", help="Only of this repository: github.com/example/shop, or shop."
)
@click.option("--since", default="", metavar="WHEN", help="Only those active since then: 2026-01-31, 7d, yesterday.")
@click.option("--until", default="", metavar="WHEN", help="Only those started before then.")
@click.option("--all", "everything", is_flag=True, help="Include subagents, saved outputs and older versions.")
@click.option("--live", is_flag=True, help="Only running ones, with their running subagents and open calls.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="How many to list.")
@click.option("--after", default="", metavar="CURSOR", help="Continue where an earlier list ended.")
def command(
    cx: frame.CommandContext,
    text: tuple[str, ...],
    everything: bool,
    live: bool,
    limit: int,
    after: str,
    **filters: str,
) -> int:
    """List sessions, newest first; with TEXT only those whose title, first prompt or summary holds it.

    The short id in the last column is what `show`, `search --session` and `export` take; so is @last.
    """
    from everturn.sessions.lookup import list_sessions

    now = clock.now()
    session_filter = cx.filter(everything, text=" ".join(text), **filters)
    if live:
        return _list_running(cx, session_filter, now)
    page = list_sessions(cx.store(), session_filter, limit, after)
    if cx.json:
        from everturn.export.json_document import session_item

        cx.out.emit_json("sessions", map(session_item, page.items), page.next)
    elif page.items:
        print_session_rows(cx.out, page.items, now)
    if not page.items:
        cx.out.warn(_nothing(session_filter, after))
        return 3
    if page.next and not cx.json:
        total = cx.store().count_sessions(session_filter)
        cx.out.say(f"{len(page.items)} of {plural(total, 'session')}; for more, add --after {page.next}")
    return 0


def _list_running(cx: frame.CommandContext, session_filter: SessionFilter, now: int) -> int:
    """List the sessions that are running, each with its running subagents and the calls that have no result yet."""
    from everturn.export.json_document import call_facts, session_facts
    from everturn.sessions.lineage import find_running
    from everturn.sessions.lookup import short_ids

    store = cx.store()
    found = find_running(store, session_filter, now)
    if cx.json:
        items = [
            {
                **session_facts(one.session, store.session(one.session.id)[1]),
                "children": [
                    session_facts(*store.session(c.session.id)) for c in one.children if c.session is not None
                ],
                "open_calls": [call_facts(call) for call in one.open_calls],
            }
            for one in found
        ]
        cx.out.emit_json("running", items)
    for one in () if cx.json else found:
        rows = [one.session, *(child.session for child in one.children if child.session is not None)]
        shorts = short_ids(rows, store)
        for row in rows:
            about = store.session(row.id)[1]
            words = in_one_line(cx.out, about.title or about.first_prompt or about.agent_name, _ABOUT)
            mark = "" if row.kind == "main" else "  ↳ "
            cx.out.emit(
                f"{mark}{cx.out.text(shorts[row.id])}  {short_ago(row.ended, now)}  {row.agent}  {words}".rstrip()
            )
        for call in one.open_calls:
            cx.out.emit(f"  … {cx.out.text(call.name)}: no result yet, called {ago(call.started, now)}".rstrip())
    if not found:
        cx.out.warn("no session is running: none was written to within the last five minutes")
    return 0 if found else 3


def _nothing(session_filter: SessionFilter, after: str) -> str:
    from everturn.store.contract import SessionFilter

    if after:
        return "there are no more sessions"
    if session_filter == SessionFilter():
        return "there are no sessions in the archive; run `everturn sync`"
    return "no session matches; remove a filter, add --all for subagents, or look inside them with `everturn search`"
