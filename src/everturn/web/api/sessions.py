"""The operations on sessions, search, lineage, health and jobs: the same jobs and the same JSON as the commands.

Operations that change something, or start a job, need the token of the run (`security`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

from everturn.errors import NothingFound
from everturn.export import json_document
from everturn.export.page.outline import OutlineEntry
from everturn.model.archive import Session
from everturn.model.vocabulary import QUERY_RULE
from everturn.sessions.lineage import Lineage, lineage
from everturn.sessions.lookup import list_sessions, put_marks
from everturn.sessions.messages import TurnView, passages, read_turns
from everturn.text.folders import FOLDER_RULE
from everturn.web import job_starts, schemas
from everturn.web.api.operation import SESSION, Operation, Parameter, body_of, list_frame, session_of
from everturn.web.pages.lineage import related_sessions
from everturn.web.pages.record import captured_record
from everturn.web.pages.search import find_hits
from everturn.web.pages.session_panels import outline_entries
from everturn.web.pages.sessions import filter_of
from everturn.web.request import WebRequest
from everturn.web.site import Site, WebJob

_TURNS = 50


def _sessions(request: WebRequest) -> dict[str, Any]:
    page = list_sessions(request.store, filter_of(request), request.number("limit", 20, 1, 200), request.word("after"))
    return list_frame("sessions", map(json_document.session_item, page.items), page.next)


def _show(request: WebRequest) -> dict[str, Any]:
    session = session_of(request)
    first = request.number("first", 1, 1)
    last = min(request.number("last", first + _TURNS - 1, first), first + _TURNS - 1)
    relatives = lineage(request.store, session)
    views = read_turns(request.store, session, first - 1, last - 1)
    about = {
        "session": json_document.session_facts(session, request.store.session(session.id)[1]),
        "source": json_document.source_facts(request.store, session),
        "lineage": json_document.lineage_facts(relatives),
    }
    following = str(last + 1) if last < session.n_turns else ""
    return list_frame("show", (_turn(request, session, view, relatives) for view in views), following, **about)


def _turn(request: WebRequest, session: Session, view: TurnView, relatives: Lineage) -> dict[str, Any]:
    tools = request.choice("tools", ("yes", "no")) == "yes"
    children, items = relatives.children_by_call(), []
    for one in passages(request.store, request.sources, session, view, tools):
        started = children.get((one.call.seq, one.call.idx), ()) if one.call else ()
        items.append(json_document.passage_item(one, tools, [child.native_id for child in started]))
    return {**json_document.turn_facts(view.turn), "passages": items}


def _outline(request: WebRequest) -> dict[str, Any]:
    session = session_of(request)
    entries = outline_entries(request, session)
    following = entries[-1].turn + 1 if entries else session.n_turns + 1
    return list_frame("outline", entries, str(following) if following <= session.n_turns else "")


def _record(request: WebRequest) -> dict[str, Any]:
    row, record = captured_record(request, session_of(request), request.number("message", 1, 1) - 1)
    if not record:
        raise NothingFound("the bytes of this session were not kept; only its structure is there")
    return list_frame("record", [json_document.record_item(row, request.clean.line(record))])


def _search(request: WebRequest) -> dict[str, Any]:
    page = find_hits(request, request.word("q"), request.number("limit", 20, 1, 200))
    about = {"note": page.note or None, "notes": page.notes, "scope": page.scope or None}
    return list_frame("search", map(json_document.hit_item, page.items), page.next, **about)


def _lineage(request: WebRequest) -> dict[str, Any]:
    session = session_of(request)
    graph = related_sessions(request, session)
    return list_frame("lineage", graph.nodes, session=session.native_id, edges=graph.edges)


def _health(request: WebRequest) -> dict[str, Any]:
    doctor = job_starts.health_now(request)
    return list_frame("doctor", map(asdict, doctor.checks), worst=doctor.worst, sizes=request.store.sizes())


def _restore_result(request: WebRequest) -> dict[str, Any]:
    job = job_starts.last_restore_job(request.site, session_of(request).id)
    if job is None or job.state != "done":
        raise NothingFound("this session was not restored in this run; POST /api/restore starts it")
    return list_frame("restore", [job.result])


def _job_answer(request: WebRequest) -> dict[str, Any]:
    return job_without_result(request.site.jobs.get(request.word("id")))


def job_without_result(job: Any) -> dict[str, Any]:
    names = ("id", "name", "state", "done", "total", "error")
    return {"schema": "everturn/job@1", **{name: getattr(job, name) for name in names}}


_WHERE = (
    Parameter("agent", "Only of this agent."),
    Parameter("workspace", FOLDER_RULE),
    Parameter("since", "Since then: 2026-01-31, 7d, yesterday."),
    Parameter("until", "Before then."),
)
_PAGED = (
    Parameter("limit", "How many, at most 200.", "integer"),
    Parameter("after", "The cursor `next` of the page before."),
)

READ_OPERATIONS = (
    Operation(
        "/api/sessions", "List sessions, newest first.", _sessions, schemas.ItemsJson[schemas.SessionJson],
        (
            Parameter("q", "Part of title, first prompt or summary."), *_WHERE,
            Parameter("all", "1: include subagents, saved outputs and older versions."), *_PAGED,
        ),
    ),
    Operation(
        "/api/show", "Read turns of a session.", _show, schemas.ShowJson,
        (
            SESSION, Parameter("first", "The first turn, from 1.", "integer"),
            Parameter("last", "The last turn; at most 50 are given.", "integer"),
            Parameter("tools", "yes: also what went into tools and what came out."),
        ),
    ),
    Operation(
        "/api/outline", "The turns of a session: the beginning of each prompt, failures and edits.", _outline,
        schemas.ItemsJson[OutlineEntry],
        (
            SESSION, Parameter("first", "The first turn, from 1.", "integer"),
            Parameter("last", "The last turn; at most 400 are given.", "integer"),
        ),
    ),
    Operation(
        "/api/record", "A message as it was captured, secrets masked.", _record, schemas.ItemsJson[schemas.RecordJson],
        (SESSION, Parameter("message", "Its number, from 1.", "integer")),
    ),
    Operation(
        "/api/search", "Find messages by their words, best first.", _search, schemas.SearchJson,
        (
            Parameter("q", f"What to look for, as `everturn search` takes it. {QUERY_RULE}", required=True), *_WHERE,
            Parameter("in", "Only in this part.", several=True),
            Parameter("sort", "best, or time for the newest matches first."),
            Parameter("collapse", "no: list matches with the same text one by one, not under `similar`."), *_PAGED,
        ),
    ),
    Operation("/api/lineage", "The sessions related to a session.", _lineage, schemas.GraphJson, (SESSION,)),
    Operation("/api/health", "What is safe, what is not, and what an agent will soon delete.", _health, schemas.DoctorJson),
    Operation(
        "/api/restored", "The document of a session that was restored in this run.", _restore_result,
        schemas.ItemsJson[schemas.SummaryJson], (SESSION,),
    ),
    Operation(
        "/api/jobs", "The progress of a job.", _job_answer, schemas.JobJson, (Parameter("id", "Of the job.", required=True),)
    ),
)  # fmt: skip


def _change_marks(request: WebRequest) -> dict[str, Any]:
    session, change = session_of(request), body_of(request, schemas.MarksChangeJson)
    marks = put_marks(request.store, session, request.now, change.title, change.star, change.note)
    item = schemas.MarksJson(session.native_id, session.agent, marks.title, marks.star, marks.note)
    return list_frame("marks", [item])


def _start_restore(request: WebRequest) -> dict[str, Any]:
    return job_without_result(
        job_starts.start_restore_job(request, session_of(request), body_of(request, schemas.RestoreOptionsJson))
    )


def _start_job(start: Callable[[Site], WebJob], request: WebRequest) -> dict[str, Any]:
    body_of(request, schemas.NothingJson)
    return job_without_result(start(request.site))


CHANGE_OPERATIONS = (
    Operation(
        "/api/marks", "Put a title, a star or a note on a session.", _change_marks, schemas.ItemsJson[schemas.MarksJson],
        (SESSION,), "POST", schemas.MarksChangeJson,
    ),
    Operation(
        "/api/restore", "Start restoring a session; with a model only if one is named and confirmed.", _start_restore,
        schemas.JobJson, (SESSION,), "POST", schemas.RestoreOptionsJson,
    ),
    Operation(
        "/api/sync", "Archive what is new in the agents' files.",
        partial(_start_job, job_starts.start_sync), schemas.JobJson, (), "POST", schemas.NothingJson,
    ),
    Operation(
        "/api/examine", "Prove health by writing, reading and searching.",
        partial(_start_job, job_starts.start_examining), schemas.JobJson, (), "POST", schemas.NothingJson,
    ),
    Operation(
        "/api/verify", "Hash every stored byte again and compare with the live files.",
        partial(_start_job, job_starts.start_verifying), schemas.JobJson, (), "POST", schemas.NothingJson,
    ),
)  # fmt: skip
