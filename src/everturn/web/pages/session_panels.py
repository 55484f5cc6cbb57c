"""The panels beside a conversation: the outline, matches in the session, its cost, files and failures; and its actions."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from everturn.analytics import counts
from everturn.analytics.cost import dollars, token_cost
from everturn.analytics.counts import family_ids
from everturn.errors import UsageError
from everturn.export.json_document import as_json
from everturn.export.markdown import as_markdown
from everturn.export.page.outline import OutlineEntry, read_outline
from everturn.export.page.standalone import as_html
from everturn.model.archive import Session, SessionText
from everturn.model.vocabulary import SESSION_KINDS
from everturn.resume.handoff import own_workspace
from everturn.retrieval.search import SearchFilters, search
from everturn.sessions.lineage import lineage
from everturn.store.contract import AnalyticsScope, SessionFilter
from everturn.text.printable import short_path
from everturn.web.analytics_scope import load_prices, start_counting
from everturn.web.request import Bytes, PageReply, WebRequest
from everturn.web.session_lines import excerpt_pieces

_MOST_ENTRIES = 400  # of an outline at a time
_MOST_MATCHES = 200
_MOST_FILES = 12
_MOST_FAILURES = 12
_MOST_CHILDREN = 12
_PATH = 44
_OPERATORS = frozenset('"*:/-')  # characters that mean something in a query


def outline_entries(request: WebRequest, session: Session) -> list[OutlineEntry]:
    """Return the outline from turn `first` (counted from 1) on. Cached until the session grows."""
    first = request.number("first", 1, 1)
    last = min(request.number("last", first + _MOST_ENTRIES - 1, first), first + _MOST_ENTRIES - 1)

    def look() -> list[OutlineEntry]:
        return read_outline(request.store, request.sources, session, request.clean, first - 1, last - 1)

    return request.site.until_it_grows(f"outline {first} {last}", session, look)


def draw_find(request: WebRequest) -> PageReply:
    """Draw the matches of `q` in the session, in the order of the conversation."""
    session, _ = request.session()
    words = request.word("q")
    values: dict[str, Any] = {"session": session, "matches": [], "problem": "", "more": False}
    try:
        values |= _find_matches(request, session, words) if words else {}
    except UsageError as mistake:  # a filter that is not yet typed to its end
        values["problem"] = request.line(str(mistake), 300)
    return PageReply("find", values, "Find in session")


def _find_matches(request: WebRequest, session: Session, words: str) -> dict[str, Any]:
    """Return the matches of the words as they are typed; if there are none, of the words one by one."""
    typed = [f'"{words}"'] if _OPERATORS.isdisjoint(words) else []
    for query in (*typed, words):
        found = search(
            request.store, request.sources, query, SearchFilters(session=session), _MOST_MATCHES, "", request.clean,
            request.now, understand=False,
        )  # fmt: skip
        rows = sorted(((hit.row, hit) for hit in found.items if hit.row is not None), key=lambda pair: pair[0].seq)
        if rows:
            break
    matches = [
        {"turn": row.turn + 1, "message": row.seq + 1, "field": hit.field.replace("_", " "),
         "pieces": excerpt_pieces(request, hit)}
        for row, hit in rows
    ]  # fmt: skip
    return {"matches": matches, "more": bool(found.next)}


def draw_details(request: WebRequest) -> PageReply:
    """Draw cost, edited files, failed calls and subagents. Cached until the session grows."""
    session, text = request.session()
    return PageReply(
        "details", request.site.until_it_grows("details", session, lambda: _details(request, session, text))
    )


def _details(request: WebRequest, session: Session, text: SessionText) -> dict[str, Any]:
    store = request.store
    children = [one for one in lineage(store, session).children if one.session is not None]
    files = Counter[str](one.row.path for one in store.edits_of_session(session.id))
    numbers = {path: number for number, path in enumerate(files, 1)}  # as the list of edited files counts them
    failed = [call for call in store.calls(session.id) if call.status == "error"]
    return {
        "session": session,
        **_cost(request, session),
        "files": [
            {"path": request.line(path, 300), "short": _short(request, path, text), "n": n, "number": numbers[path]}
            for path, n in files.most_common(_MOST_FILES)
        ],
        "n_files": len(files),
        "failures": [
            {"turn": call.turn + 1, "message": call.seq + 1, "name": request.line(call.name, 40),
             "kind": call.error_class.replace("_", " ")}
            for call in failed[:_MOST_FAILURES]
        ],
        "n_failures": len(failed),
        "children": [
            {"number": one.session.id, "turns": one.session.n_turns, "calls": one.session.n_calls,
             "title": _child_title(request, one.session)}
            for one in children[:_MOST_CHILDREN] if one.session is not None
        ],
        "n_children": len(children),
    }  # fmt: skip


def _child_title(request: WebRequest, session: Session) -> str:
    text = request.store.session(session.id)[1]
    return request.line(text.title or text.first_prompt, 80) or request.line(session.native_id.rpartition("/")[2], 40)


def _short(request: WebRequest, path: str, text: SessionText) -> str:
    """Return a path relative to the workspace, shortened in its middle."""
    root = text.workspace.rstrip("/\\")
    inside = path[len(root) + 1 :] if root and path.startswith(f"{root}/") else path
    return short_path(request.line(inside, 400), _PATH)


def _cost(request: WebRequest, session: Session) -> dict[str, Any]:
    """Return the cost of the session and of its subagents; nothing while many sessions are being counted."""
    store, prices = request.store, load_prices(request)
    if start_counting(request):
        return {"cost": "", "whole": "", "unknown": []}
    counts.catch_up(store)
    family = family_ids(store, session, subagents=True)
    wanted = SessionFilter(kinds=SESSION_KINDS, states=("current", "superseded"))
    rows = [row for row in store.usage(AnalyticsScope(wanted, family)) if not row.inherited]
    own = [row for row in rows if row.session == session.id]
    whole = token_cost(rows, prices)
    return {
        "cost": dollars(token_cost(own, prices)),
        "whole": dollars(whole) if len(rows) > len(own) else "",
        "unknown": [request.line(name, 60) or "an unnamed model" for name in whole.unknown_models[:4]],
    }


class ResumeCommand(Struct, frozen=True):
    """A command that continues a session, and the agent it opens."""

    title: str
    command: str


def resume_commands(request: WebRequest, session: Session, text: SessionText) -> dict[str, list[ResumeCommand]]:
    """Return the commands to copy: those that resume the session in an agent, and those that hand it off."""
    name = shlex.quote(request.line(session.native_id, 200))
    agents = [source for source in request.sources.values() if source.native is not None]
    agents.sort(key=lambda source: (source.name != session.agent, source.title))
    resume = list(_own_command(request, session, text))
    resume += [
        ResumeCommand(
            f"{one.title}" if one.name == session.agent else f"{one.title}, as a new session",
            f"everturn resume {name}" + ("" if one.name == session.agent else f" --in {one.name}"),
        )
        for one in agents
    ]
    able = [one for one in agents if one.native is not None and one.native.begin is not None]
    handoff = [ResumeCommand(one.title, f"everturn handoff {name} --in {one.name}") for one in able]
    return {"resume": resume, "handoff": handoff}


def _own_command(request: WebRequest, session: Session, text: SessionText) -> Iterator[ResumeCommand]:
    source = request.sources.get(session.agent)
    if source is None or source.resume_command is None or session.kind != "main":
        return
    file, _ = request.store.file_by_id(request.store.version(session.version).source)
    if file.state != "live" or file.machine != request.site.machine:
        return
    folder = own_workspace(request.store, source, session)
    if folder is None or not Path(folder or "/").is_dir():
        return
    command = shlex.join(source.resume_command(session.native_id))
    place = f"cd {shlex.quote(folder)} && " if folder else ""
    yield ResumeCommand(f"{source.title}, without everturn", request.line(f"{place}{command}", 1000))


_EXPORTS = {"html": "text/html; charset=utf-8", "md": "text/markdown; charset=utf-8", "json": "application/json"}


def draw_export(request: WebRequest) -> Bytes:
    """Return the session as a file: `as` is html, md or json. Secrets are masked. Raises UsageError."""
    session, _ = request.session()
    form = request.choice("as", tuple(_EXPORTS)) or "html"
    store, sources = request.store, request.sources
    if form == "html":
        data = "".join(as_html(store, sources, [session], request.clean)).encode("utf-8", "replace")
    elif form == "md":
        data = "".join(as_markdown(store, sources, session, request.clean, False, False)).encode("utf-8", "replace")
    else:
        data = "".join(as_json(store, sources, session, request.clean.line)).encode("utf-8", "replace")
    name = "".join(one if one.isascii() and one.isalnum() else "-" for one in session.native_id[:60]) or "session"
    return Bytes(_EXPORTS[form], data, f"{name}.{form}")
