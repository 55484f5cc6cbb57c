"""Answer what people and their agents read from a team's archive. The store is limited to the caller already (`store.visibility`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from everturn.errors import EverturnError, NoRepository, NothingFound, UsageError
from everturn.mcp.archive import McpArchive, read_page
from everturn.mcp.rpc import RpcError
from everturn.mcp.server import McpServer, Peer
from everturn.model.archive import Session, SessionText
from everturn.model.conversation import prepared
from everturn.retrieval.search import search
from everturn.sessions.lookup import resolve_session
from everturn.sessions.secrets import archive_cleaner
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store
from everturn.store.people import Caller, People, ShareLink
from everturn.text.printable import map_strings, one_line

if TYPE_CHECKING:
    from everturn.attribution.report import WhyReport
    from everturn.team.app import TeamRequest

T = TypeVar("T")

_TOKENS = 8000  # of a page of turns
_LAST = 999_999_999
LONGEST_LINK = 365  # days
#: A page of a session: nothing is loaded, sent or framed, and its scripts have no origin. Search engines leave it out.
PAGE_HEADERS = {
    "content-security-policy": "sandbox allow-scripts allow-popups; frame-ancestors 'none'; form-action 'none'; connect-src 'none'",
    "x-frame-options": "DENY",
    "x-robots-tag": "noindex, nofollow",
}
LONGEST_PAGE = 32 << 20  # bytes
#: The tool that reads a repository on the machine it runs on, which here is the server.
_WHY = "why"
_FEW = 40  # lines that are shown with everything that is known
_MOST_LINES = 2000  # of one question about a file
_BUDGET = 4000  # tokens of a restored session
_DAY_MS = 86_400_000


class ShareRequest(Struct, frozen=True):
    """A session of the caller's own, and the project to share it with; None takes it back."""

    session: str
    project: str | None = None


class LinkRequest(Struct, frozen=True):
    """A session of the caller's own, and for how long its link is valid."""

    session: str
    days: int = 7


class EraseRequest(Struct, frozen=True):
    """A session of the caller's own, or everything that the caller has pushed."""

    session: str = ""
    everything: bool = False


class RequestArchive(McpArchive):
    """The archive of one request, for the MCP server."""

    def __init__(self, store: Store, now: int) -> None:
        super().__init__(store.url, clock=lambda: now)
        self._store = store

    def read(self, job: Callable[[Store], T]) -> T:
        return job(self._store)

    def close(self) -> None:
        """Do nothing: the request closes its store."""


def describe_caller(caller: Caller) -> dict[str, Any]:
    return {"name": caller.name, "role": caller.role, "scopes": caller.scopes, "expires_at": caller.expires_at}


def list_sessions(request: TeamRequest) -> dict[str, Any]:
    clean = archive_cleaner(request.store)
    given = request.given
    agent, owner, machine, project, text = (
        given.get(name, "") for name in ("agent", "owner", "machine", "project", "text")
    )
    wanted = SessionFilter(agent=agent, owner=owner, machine=machine, project=project, text=text)
    rows, following = request.store.sessions(wanted, request.number("limit", 50, 200), given.get("after", ""))
    return {"items": [_session_facts(session, text, clean) for session, text in rows], "next": following or None}


def search_archive(request: TeamRequest) -> dict[str, Any]:
    clean = archive_cleaner(request.store)
    limit = request.number("limit", 20, 100)
    results = search(
        request.store, all_sources(), request.given.get("q", ""), limit=limit, cursor=request.given.get("cursor", ""),
        clean=clean, now=request.now,
    )  # fmt: skip
    items = [
        {
            **_session_facts(hit.session, hit.text, clean),
            "turn": hit.row.turn + 1 if hit.row else None,
            "at": hit.at,
            "field": hit.field,
            "snippet": hit.snippet,
            "spans": hit.spans,
        }
        for hit in results.items
    ]
    return {"items": items, "next": results.next or None, "note": results.note}


def read_session(request: TeamRequest) -> dict[str, Any]:
    session = resolve_session(request.store, request.given["session"])
    first, last = request.number("first", 1, _LAST), request.number("last", _LAST, _LAST)
    page = read_page(RequestArchive(request.store, request.now), request.store, session, first, last, _TOKENS)
    clean = archive_cleaner(request.store)
    return {**_session_facts(session, request.store.session(session.id)[1], clean), "text": page.text}


def restore_session(request: TeamRequest) -> dict[str, Any]:
    """Return what a fresh agent must know to continue a session, as Markdown, each statement with its place. No model is asked."""
    from everturn.restore.document import LEAST
    from everturn.restore.job import RestoreOptions, RestoreTarget
    from everturn.restore.job import restore_session as restore
    from everturn.restore.markdown import document_markdown

    budget = request.number("budget", _BUDGET, 100_000, least=LEAST)
    session = resolve_session(request.store, request.given["session"])
    clean = archive_cleaner(request.store)
    document = restore(RestoreTarget(request.store, session), all_sources(), RestoreOptions(), None)
    facts = _session_facts(session, request.store.session(session.id)[1], clean)
    return {**facts, "text": document_markdown(document, clean, budget)}


def sum_work(request: TeamRequest) -> dict[str, Any]:
    """Return what the sessions that the caller may see did, by person, project, agent, model or month."""
    from everturn.store.analytics import WORK_KEYS
    from everturn.store.analytics import sum_work as sums

    by, days = request.given.get("by", "") or "owner", request.number("days", 0, 36_500, least=0)
    if by not in WORK_KEYS:
        raise UsageError(f"by={by[:40]!r} is none of {', '.join(WORK_KEYS)}")
    clean = archive_cleaner(request.store)
    rows = [msgspec.to_builtins(one) for one in sums(request.store, by, request.now - days * _DAY_MS if days else 0)]
    return {"by": by, "items": [{**one, "key": one_line(clean(one["key"]), 200)} for one in rows]}


def find_why(request: TeamRequest) -> dict[str, Any]:
    """Return which turns wrote the lines of a file, a commit or a range, in the server's copy of a project's repository."""
    target, clean = request.given.get("target", ""), archive_cleaner(request.store)
    text, report = _why(request, request.given.get("project", ""), target)
    from everturn.attribution.summary import commit_items, report_items

    items = [map_strings(one, clean) for one in report_items(report)]
    return {"target": target, "text": text, "items": items, "commits": map_strings(commit_items(report), clean)}


def _why(request: TeamRequest, project: str, target: str) -> tuple[str, WhyReport]:
    """Return the answer as text and as a report. Raises NothingFound for a project without a repository here, or of others."""
    from everturn.attribution.job import WhyOptions, open_why
    from everturn.attribution.summary import detail_lines, overview_lines

    folder = _repository_of(request.repositories, project)
    _check_target(target)
    clean = archive_cleaner(request.store)
    try:
        job, path, lines = open_why(request.store, all_sources(), request.now, folder, target)
        with job.repository:
            if job.repository.root is not None and job.repository.root.resolve() != folder.resolve():
                raise UsageError("the file belongs to another repository")
            if lines is not None and lines[1] - lines[0] >= _MOST_LINES:
                raise UsageError(f"{target}: ask for at most {_MOST_LINES} lines at once")
            few = lines is not None and lines[1] - lines[0] < _FEW
            options = WhyOptions(full=few)
            report = job.file(path, lines, options) if path is not None else job.commits(target, options)
    except NoRepository as error:
        raise EverturnError("the server's copy of this repository cannot be read; ask an administrator") from error
    except (UsageError, NothingFound) as error:  # without the place of the copy
        kind = NothingFound if isinstance(error, NothingFound) else UsageError
        raise kind(str(error).replace(str(folder), project or ".")) from error
    return "\n".join(detail_lines(report, clean) if few else overview_lines(report, clean)), report


def _repository_of(known: Mapping[str, Path], project: str) -> Path:
    """Return the copy of a project of the caller's; without a name, of the only one."""
    if not project and len(known) == 1:
        return next(iter(known.values()))
    if project not in known:
        names = ", ".join(sorted(known)) or "none"
        raise NothingFound(f"the server has no repository {project!r} of yours; it has: {names}")
    return known[project]


def _check_target(target: str) -> None:
    """Raise UsageError for a path that leads out of the repository."""
    path = PurePosixPath(target)
    if not target.strip() or "\0" in target or "\\" in target or path.is_absolute() or ".." in path.parts:
        raise UsageError("name a file of the repository by its path there (FILE, FILE:LINE), a commit, or a range A..B")


def _own_session(store: Store, caller: Caller, name: str) -> tuple[Session, set[int]]:
    """Return an own session and its files. Raises NothingFound for one of somebody else, as if it did not exist."""
    own = [row for row in store.sessions_like(name, 1000) if row.owner == caller.name] if name else []
    if not own or len({row.native_id for row in own}) > 1:
        raise NothingFound(f"you have no single session {name!r} here; `everturn team sessions` lists them")
    return own[0], {store.version(row.version).source for row in own}


def make_link(request: TeamRequest) -> dict[str, Any]:
    """Make a link to an own session."""
    store, caller, now, wanted = request.store, request.caller, request.now, request.read(LinkRequest)
    if not 1 <= wanted.days <= LONGEST_LINK:
        raise UsageError(f"a link is valid for 1 to {LONGEST_LINK} days, not {wanted.days}")
    session, _ = _own_session(store, caller, wanted.session)
    people = People(store)
    with store.write():
        source = store.version(session.version).source
        made = people.new_link(caller, source, (session.agent, session.native_id), now, wanted.days)
        people.note(caller, "make link", session.native_id, now)
    return {**link_facts(made), "path": f"/s/{made.secret}"}


def link_facts(link: ShareLink) -> dict[str, Any]:
    return {
        "id": link.id, "session": link.native_id, "agent": link.agent, "created_at": link.created_at,
        "expires_at": link.expires_at,
    }  # fmt: skip


def linked_page(store: Store, caller: Caller, link: ShareLink) -> bytes:
    """Return the session of a link as a page: secrets are masked, pictures and other sessions are left out.

    Raises NothingFound if it is gone.
    """
    sessions = [
        row
        for row in store.sessions_of(link.agent, link.native_id)
        if row.owner == caller.name and store.version(row.version).source == link.source
    ]
    newest = max(sessions, key=lambda row: (row.state == "current", row.id), default=None)
    if newest is None:
        raise NothingFound("this link is not valid, or no longer; ask the person who sent it for a new one")
    return session_html(store, newest, alone=True)


def session_html(store: Store, session: Session, alone: bool = False) -> bytes:
    """Return a session as a page. Raises UsageError for one that is too long."""
    from everturn.export.page.standalone import as_html

    page = bytearray()
    for piece in as_html(store, all_sources(), [session], archive_cleaner(store), alone=alone):
        page += piece.encode("utf-8", "replace")
        if len(page) > LONGEST_PAGE:
            raise UsageError(
                "this session is too long for one page; read it in parts with `everturn team show --turns`"
            )
    return bytes(page)


def erase_own(request: TeamRequest) -> dict[str, Any]:
    """Erase an own session, which is not pushed again, or all files of the caller. Raises UsageError, NothingFound."""
    store, caller, now, wanted = request.store, request.caller, request.now, request.read(EraseRequest)
    if wanted.everything == bool(wanted.session):
        raise UsageError("name one session, or everything")
    people = People(store)
    if wanted.everything:
        files = [file for file, _ in store.files() if file.owner == caller.name]
        for file in files:
            with store.write():
                people.share_file(file.id, None)
                store.delete_file(file.id)
        people.note(caller, "erase everything", "", now)
        return {"erased": len(files)}
    session, sources = _own_session(store, caller, wanted.session)
    for source in sources:
        with store.write():
            people.share_file(source, None)
            store.empty_file(source)
            people.note(caller, "erase", session.native_id, now)
    return {"erased": len(sources)}


def share_session(request: TeamRequest) -> dict[str, Any]:
    """Share an own session. Raises NothingFound for one of somebody else, as if it did not exist."""
    store, caller, now, wanted = request.store, request.caller, request.now, request.read(ShareRequest)
    session, sources = _own_session(store, caller, wanted.session)
    people = People(store)
    project = people.membership(caller, wanted.project) if wanted.project else None
    if wanted.project and project is None:
        raise NothingFound(f"you are in no project {wanted.project!r}; ask an administrator to add you")
    with store.write():
        for source in sources:
            people.share_file(source, project[0] if project else None)
        people.note(caller, "share" if project else "unshare", session.native_id, now)
    return {"session": session.native_id, "project": wanted.project}


def answer_rpc(request: TeamRequest) -> dict[str, Any] | None:
    """Answer one JSON-RPC message; None for a notification."""
    try:
        message = msgspec.json.decode(request.body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise UsageError("the request is not a JSON-RPC message") from error
    number, method, params = message.get("id"), message.get("method"), message.get("params") or {}
    if not isinstance(method, str) or not isinstance(params, dict):
        raise UsageError("the request is not a JSON-RPC message")
    if number is None:
        return None
    try:
        if method == "tools/call" and params.get("name") == _WHY:
            result = _call_why(request, params.get("arguments"))
        else:
            result = McpServer(RequestArchive(request.store, request.now)).answer(Peer(), method, params)
        if method == "tools/list" and not request.repositories:
            result = {**result, "tools": [tool for tool in result["tools"] if tool["name"] != _WHY]}
    except RpcError as refused:
        return {"jsonrpc": "2.0", "id": number, "error": {"code": refused.code, "message": refused.message}}
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _call_why(request: TeamRequest, arguments: Any) -> dict[str, Any]:
    """Run the tool `why` on the server's copy of a project, which `folder` names, instead of on a folder of the server."""
    from everturn.mcp.tools.why import WhyArguments
    from everturn.text.printable import quote_for_model
    from everturn.text.tokens import cut_to_tokens

    if not request.repositories:
        raise UsageError(
            "why works on your own machine only: use `everturn mcp` there; this server has no repository of yours"
        )
    try:
        asked = msgspec.convert(arguments or {}, prepared(WhyArguments))
        text, _ = _why(request, asked.folder, asked.target)
    except (msgspec.ValidationError, UsageError, NothingFound) as error:
        clean = archive_cleaner(request.store)
        return {"content": [{"type": "text", "text": clean(f"why: {error}")}], "isError": True}
    return {
        "content": [{"type": "text", "text": quote_for_model(cut_to_tokens(text, asked.max_tokens))}],
        "isError": False,
    }


def _session_facts(session: Session, text: SessionText, clean: Callable[[str], str]) -> dict[str, Any]:
    machine = session.machine.removeprefix(f"{session.owner}/")
    return {
        "session": session.native_id,
        "agent": session.agent,
        "owner": session.owner,
        "machine": one_line(clean(machine), 100),
        "title": one_line(clean(text.title or text.first_prompt), 120),
        "workspace": one_line(clean(text.workspace), 200),
        "started": session.started,
        "ended": session.ended,
        "turns": session.n_turns,
    }
