"""The files that a session edited, and one of them with the sessions that wrote its lines in the margin.

A file is named by its number in the list of the session, never by a path of the request. It is read from the working tree of
a git repository on this machine, and only if git tracks it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from everturn.attribution.job import WhyOptions, open_why
from everturn.attribution.report import SILENCES, WhyReport, count_levels
from everturn.attribution.summary import LineGroup, group_lines
from everturn.errors import EverturnError, NothingFound
from everturn.model.archive import Session
from everturn.web.pages.session import turn_address
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import title_of

_MOST_FILES = 500
_MOST_LINES = 5_000


def draw(request: WebRequest) -> PageReply:
    session, text = request.session()
    files = _edited_files(request, session)
    rows = [
        {"name": request.line(path, 300), "edits": n, "turn": turn + 1, "to": f"/s/{session.id}/files/{number}"}
        for number, (path, (n, turn)) in enumerate(files.items(), 1)
    ]
    values = {"session": session, "title": title_of(request, session, text), "rows": rows[:_MOST_FILES]}
    return PageReply("files", values, "Edited files")


def draw_lines(request: WebRequest) -> PageReply:
    """Draw a file with the turns that wrote its lines; a message in place of the lines if it is not here."""
    session, text = request.session()
    names = list(_edited_files(request, session))
    number = request.path["number"]
    if not 1 <= number <= len(names):
        raise NothingFound(f"session {session.native_id} edited {len(names)} files; there is no file {number}")
    values: dict[str, Any] = {
        "session": session,
        "title": title_of(request, session, text),
        "name": request.line(names[number - 1], 300),
        "message": "",
        "rows": [],
        "counts": None,
        "notes": [],
    }
    try:
        report = _ask(request, text.workspace, names[number - 1])
    except EverturnError as error:
        return PageReply("file_lines", {**values, "message": request.line(str(error), 400)}, "File")
    rows = [row for group in group_lines(report.files[0]) for row in _group_rows(request, report, group)]
    more = {"rows": rows[:_MOST_LINES], "counts": count_levels(report), "notes": list(report.notes)}
    return PageReply("file_lines", {**values, **more}, "File")


def _edited_files(request: WebRequest, session: Session) -> dict[str, tuple[int, int]]:
    """Return the paths that a session edited, in order, with the number of edits and the last turn."""
    found: dict[str, tuple[int, int]] = {}
    for one in request.store.edits_of_session(session.id):
        found[one.row.path] = (found.get(one.row.path, (0, 0))[0] + 1, one.row.turn)
    return found


def _ask(request: WebRequest, workspace: str, path: str) -> WhyReport:
    folder = Path(workspace or "/")
    place = folder / path
    if not place.parent.is_dir():
        raise NothingFound("the folder of this file is not on this machine")
    job, file, _ = open_why(request.store, request.sources, request.now, place.parent, place.name)
    with job.repository:
        if file is None:
            raise NothingFound("this file is no longer in the working tree")
        return job.file(file, None, WhyOptions())


def _group_rows(request: WebRequest, report: WhyReport, group: LineGroup) -> list[dict[str, Any]]:
    """Return the lines of a group; the first has the margin."""
    lines = [one for one in report.files[0].lines if group.first <= one.line <= group.last]
    margin = _margin(request, report, group)
    return [
        {
            "line": one.line,
            "text": request.text(one.text, "\t"),
            "level": one.level,
            "margin": margin if number == 0 else None,
        }
        for number, one in enumerate(lines)
    ]


def _margin(request: WebRequest, report: WhyReport, group: LineGroup) -> dict[str, str]:
    answer = group.answer
    commit = answer.commit[:9] or "not committed"
    if answer.writer is None:
        return {"label": "–", "to": "", "hint": f"{commit}: {SILENCES.get(answer.silence, '')}", "commit": commit}
    writer = answer.writer
    note = next(
        one for one in report.turns if (one.agent, one.session, one.turn) == (writer.agent, writer.session, writer.turn)
    )
    rows = request.store.sessions_of(writer.agent, writer.session)
    to = turn_address(rows[-1].id, writer.turn + 1) if rows else ""
    also = "".join(f", also written by {one.session[:8]} t{one.turn + 1}" for one in answer.alternatives)
    hint = request.line(f"{answer.level} ({answer.rule}){also}, {commit}: {note.reason.asked or note.title}", 300)
    return {"label": f"{writer.session[:8]} t{writer.turn + 1}", "to": to, "hint": hint, "commit": commit}
