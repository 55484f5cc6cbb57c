"""Where a search looks, and how far it may widen.

A search may be about one session, about all that hangs together with it (what it came from, what it started), about a
folder, or about everything. `scope_rings` gives these from the narrowest to the widest that is allowed, each as filters with a
word for it: the first that has an answer is the one that counts, and the answer says which it was.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.archive import MessageRow, Session, SessionText
from everturn.model.words import ORIGINS, SESSION_KINDS
from everturn.recall.lineage import find_session_by_id, lineage
from everturn.recall.origins import origin_of
from everturn.store import IndexQuery, SessionFilter, Store

#: What clients put in by themselves is not what people look for; these are the others.
SAID = tuple(name for name in ORIGINS if name != "injected")
_MOST_RELATIVES = 500


class Exclusions(Struct, frozen=True):
    """What a match must not have: parts of names, in lower case."""

    agents: tuple[str, ...] = ()
    sessions: tuple[int, ...] = ()
    workspaces: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    turns: tuple[tuple[int, int], ...] = ()


class SearchFilters(Struct, frozen=True):
    """Where to look. Empty fields do not filter."""

    agent: str = ""
    workspace: str = ""  # part of the path, case-insensitive
    session: Session | None = None
    since: int | None = None  # of the message
    until: int | None = None
    fields: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    lineage: bool = False  # with a session: also what it came from and what it started
    widen: bool = False  # when there is no answer: its folder, then everything
    branch: str = ""
    tools: tuple[str, ...] = ()
    path: str = ""
    errors: bool | None = None
    turns: tuple[int, int] | None = None  # counted from 0, both ends included
    unwanted: Exclusions = Exclusions()
    within: tuple[int, ...] = ()  # ids of sessions

    @property
    def hides_injected(self) -> bool:
        """Whether what clients put in is left out: unless one asks for it, by speaker or by field."""
        return not self.origins and "meta" not in self.fields


EVERYWHERE = SearchFilters()


class Ring(Struct, frozen=True):
    """One of the places looked at in turn."""

    name: str  # session | lineage | workspace | everything
    filters: SearchFilters


def scope_rings(store: Store, filters: SearchFilters) -> Iterator[Ring]:
    """The narrowest place first, then the wider ones that are allowed. Worked out one by one, as they are needed."""
    session = filters.session
    if session is None:
        yield Ring("workspace" if filters.workspace else "everything", filters)
        if filters.widen and filters.workspace:
            yield Ring("everything", replace(filters, workspace=""))
        return
    if not filters.lineage or filters.widen:
        yield Ring("session", _include_origins(store, filters, session))
    if filters.lineage:
        yield Ring("lineage", replace(filters, session=None, within=family_ids(store, session)))
    if filters.widen:
        open_to_all = replace(filters, session=None, turns=None)
        if workspace := store.session(session.id)[1].workspace:
            yield Ring("workspace", replace(open_to_all, workspace=workspace))
        yield Ring("everything", open_to_all)


def _include_origins(store: Store, filters: SearchFilters, session: Session) -> SearchFilters:
    """What went over into a session that everturn made is indexed in the sessions it was made from."""
    origins: dict[int, None] = {}
    elder: Session | None = session if session.n_inherited and filters.turns is None else None
    while elder is not None and elder.id not in origins and len(origins) < _MOST_RELATIVES:
        origins[elder.id] = None
        descent = origin_of(store, elder)
        elder = find_session_by_id(store, descent.agent, descent.native_id) if descent is not None else None
    return filters if len(origins) < 2 else replace(filters, session=None, within=tuple(origins))


def family_ids(store: Store, session: Session) -> tuple[int, ...]:
    """Ids of a session, of what it came from and of what it and its subagents started."""
    found = {session.id: None}
    for elder in lineage(store, session).ancestors:
        if elder.session:
            found[elder.session.id] = None
    todo = [session]
    while todo and len(found) < _MOST_RELATIVES:
        for child in lineage(store, todo.pop()).children:
            if child.session and child.session.id not in found:
                found[child.session.id] = None
                todo.append(child.session)
    return tuple(found)


def limit_to_scope(query: IndexQuery, filters: SearchFilters) -> IndexQuery:
    """The query, limited to where one looks."""
    # Superseded editions are looked at too: what was cut out of a file stands nowhere else.
    sessions = SessionFilter(
        agent=filters.agent,
        workspace=filters.workspace,
        branch=filters.branch,
        kinds=SESSION_KINDS,
        states=("current", "superseded"),
    )
    return replace(
        query,
        fields=filters.fields,
        session=filters.session.id if filters.session else None,
        sessions=sessions if filters.agent or filters.workspace or filters.branch else None,
        within=filters.within,
        origins=filters.origins,
        since=filters.since,
        until=filters.until,
        tools=filters.tools,
        path=filters.path,
        errors=filters.errors,
        turns=filters.turns,
    )


def is_unwanted(store: Store, without: Exclusions, session: Session, text: SessionText, row: MessageRow | None) -> bool:
    """Whether a match has what it must not have."""
    if without == Exclusions():
        return False
    if session.agent.lower() in without.agents or session.id in without.sessions:
        return True
    if _has_any_part(text.workspace, without.workspaces) or _has_any_part(text.branch, without.branches):
        return True
    return row is not None and (
        any(first <= row.turn <= last for first, last in without.turns) or _has_call(store, without, row)
    )


def _has_any_part(text: str, parts: tuple[str, ...]) -> bool:
    lower = text.lower()
    return any(part in lower for part in parts)


def _has_call(store: Store, without: Exclusions, row: MessageRow) -> bool:
    if not without.tools and not without.paths:
        return False
    calls = [call for call in store.calls(row.session, row.turn) if row.seq in (call.seq, call.result_seq)]
    if any(call.name.lower() in without.tools for call in calls):
        return True
    places = {(call.seq, call.idx) for call in calls} if without.paths else set()
    return bool(places) and any(
        (one.seq, one.idx) in places and _has_any_part(one.path, without.paths) for one in store.artifacts(row.session)
    )
