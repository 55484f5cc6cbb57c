"""The scope of a search: its filters, typed filters, and how far it may widen.

A search may cover one session, its lineage, a folder, or everything. `scope_rings` yields these from the narrowest to the
widest allowed: the first ring with hits counts. `apply_typed_filters` validates filters in a query such as `tool:Bash
-role:tool since:7d`. An invalid value is an error that names the valid ones; so is a single-valued filter given twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from everturn.errors import UsageError
from everturn.model.archive import MessageRow, Session, SessionText
from everturn.model.vocabulary import FIELDS, ORIGINS, SESSION_KINDS
from everturn.retrieval.query import Filter
from everturn.sessions.lineage import find_session_by_id, lineage, origin_of
from everturn.sessions.lookup import resolve_session
from everturn.store.contract import IndexQuery, SessionFilter, Store
from everturn.text.folders import folder_filter, resolve_folder
from everturn.text.times import parse_when

#: Origins searched by default: all but text that clients inserted.
SAID = tuple(name for name in ORIGINS if name != "injected")
_MAX_RELATIVES = 500


class Exclusions(Struct, frozen=True):
    """Properties that exclude a message: folders, and parts of names in lower case."""

    agents: tuple[str, ...] = ()
    sessions: tuple[int, ...] = ()
    workspaces: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()
    machines: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    turns: tuple[tuple[int, int], ...] = ()


class SearchFilters(Struct, frozen=True):
    """Filters of a search. Empty fields do not filter."""

    agent: str = ""
    workspace: str = ""  # a folder and everything below it, or its name (`text.folders`)
    session: Session | None = None
    since: int | None = None  # of the message
    until: int | None = None
    fields: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    lineage: bool = False  # with a session: also its ancestors and descendants
    widen: bool = False  # without hits: its folder, then everything
    branch: str = ""
    owner: str = ""  # who pushed it, in an archive of a team
    machine: str = ""
    project: str = ""  # a repository (`store.contract.SessionFilter`)
    tools: tuple[str, ...] = ()
    path: str = ""
    errors: bool | None = None
    turns: tuple[int, int] | None = None  # counted from 0, both ends included
    unwanted: Exclusions = Exclusions()
    within: tuple[int, ...] = ()  # ids of sessions
    taken_back: bool = False  # also messages that are not on the live path

    def session_filter(self, states: tuple[str, ...]) -> SessionFilter:
        """Return the part of the filters that sessions of every kind are chosen by, without times."""
        return SessionFilter(
            agent=self.agent, workspace=self.workspace, branch=self.branch, owner=self.owner, machine=self.machine,
            project=self.project, kinds=SESSION_KINDS, states=states,
        )  # fmt: skip

    @property
    def limits_sessions(self) -> bool:
        """Whether sessions are chosen by anything but time."""
        return bool(self.agent or self.workspace or self.branch or self.owner or self.machine or self.project)

    @property
    def hides_injected(self) -> bool:
        """Whether text that clients inserted is left out: unless the origin or field is requested."""
        return not self.origins and "meta" not in self.fields


EVERYWHERE = SearchFilters()


class Ring(Struct, frozen=True):
    """One scope of those searched in turn."""

    name: str  # session | lineage | workspace | everything
    filters: SearchFilters


def scope_rings(store: Store, filters: SearchFilters) -> Iterator[Ring]:
    """Yield the narrowest scope, then the wider ones that are allowed. Computed as needed."""
    session = filters.session
    if session is None:
        yield Ring("workspace" if filters.workspace else "everything", filters)
        if filters.widen and filters.workspace:
            yield Ring("everything", replace(filters, workspace=""))
        return
    if not filters.lineage or filters.widen:
        # With the sessions it was made from: inherited messages are indexed there.
        origins: dict[int, None] = {}
        elder: Session | None = session if session.n_inherited and filters.turns is None else None
        while elder is not None and elder.id not in origins and len(origins) < _MAX_RELATIVES:
            origins[elder.id] = None
            descent = origin_of(store, elder)
            elder = find_session_by_id(store, descent.agent, descent.native_id) if descent is not None else None
        yield Ring("session", filters if len(origins) < 2 else replace(filters, session=None, within=tuple(origins)))
    if filters.lineage:
        yield Ring("lineage", replace(filters, session=None, within=family_ids(store, session)))
    if filters.widen:
        unlimited = replace(filters, session=None, turns=None)
        if workspace := store.session(session.id)[1].workspace:
            yield Ring("workspace", replace(unlimited, workspace=workspace))
        yield Ring("everything", unlimited)


def family_ids(store: Store, session: Session) -> tuple[int, ...]:
    """Return the ids of a session, its ancestors, and the sessions it and its subagents started."""
    found = {session.id: None}
    for elder in lineage(store, session).ancestors:
        if elder.session:
            found[elder.session.id] = None
    todo = [session]
    while todo and len(found) < _MAX_RELATIVES:
        for child in lineage(store, todo.pop()).children:
            if child.session and child.session.id not in found:
                found[child.session.id] = None
                todo.append(child.session)
    return tuple(found)


def limit_to_scope(query: IndexQuery, filters: SearchFilters) -> IndexQuery:
    """Return the query limited to the filters."""
    # Superseded versions too: text that was cut out of a file is nowhere else.
    sessions = filters.session_filter(states=("current", "superseded"))
    return replace(
        query,
        fields=filters.fields,
        session=filters.session.id if filters.session else None,
        sessions=sessions if filters.limits_sessions else None,
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
    if without == Exclusions():
        return False
    if session.agent.lower() in without.agents or session.id in without.sessions:
        return True
    if any(folder_filter(one).matches(text.workspace) for one in without.workspaces):
        return True
    if _has_any_part(text.branch, without.branches) or _is_of_unwanted_place(store, without, session, text):
        return True
    return row is not None and (
        any(first <= row.turn <= last for first, last in without.turns) or _has_call(store, without, row)
    )


def _is_of_unwanted_place(store: Store, without: Exclusions, session: Session, text: SessionText) -> bool:
    """Whether a session is of an owner, a machine or a project that is left out."""
    if session.owner.lower() in without.owners or _ends_with(session.machine, without.machines):
        return True
    if not without.projects:
        return False
    if any("/" not in one and folder_filter(one).matches(text.workspace) for one in without.projects):
        return True
    return _ends_with(store.project_of(session.version), without.projects)


def _ends_with(name: str, ends: tuple[str, ...]) -> bool:
    """Whether a name, or its last parts, is one of these."""
    return any(f"/{name.lower()}".endswith(f"/{end}") for end in ends) if name else False


def _has_any_part(text: str, parts: tuple[str, ...]) -> bool:
    lower = text.lower()
    return any(part in lower for part in parts)


def _has_call(store: Store, without: Exclusions, row: MessageRow) -> bool:
    if not without.tools and not without.paths:
        return False
    calls = [call for call in store.calls(row.session, row.turn) if row.seq in (call.seq, call.result_seq)]
    if any(call.name.lower() in without.tools for call in calls):
        return True
    keys = {(call.seq, call.idx) for call in calls} if without.paths else set()
    return bool(keys) and any(
        (one.seq, one.idx) in keys and _has_any_part(one.path, without.paths) for one in store.artifacts(row.session)
    )


# --- typed filters ---

T = TypeVar("T")

#: Origins by the words people use for them.
SPEAKERS = {"user": ("human", "agent"), "assistant": ("model",), **{name: (name,) for name in ORIGINS}}
_LAST_TURN = 1 << 30
_TURNS = re.compile(r"([1-9][0-9]{0,8})(?:(-)([1-9][0-9]{0,8})?)?", re.ASCII)
YES_NO = {"yes": True, "true": True, "no": False, "false": False}


def apply_typed_filters(
    store: Store, filters: SearchFilters, typed: tuple[Filter, ...], now: int, home: str = ""
) -> SearchFilters:
    """Add typed filters. Raises UsageError for an invalid value or a contradiction."""
    for one in typed:
        if not one.value:
            raise UsageError(f"{one.name}: has no value; write {one.name}:{_EXAMPLES[one.name]}")
        changes = _NARROWING[one.name](_TypedFilter(store, filters, one, now, home))
        for name, value in changes.items():
            before = getattr(filters, name)
            if before != getattr(EVERYWHERE, name) and not isinstance(value, tuple | Exclusions) and before != value:
                raise UsageError(f"{one.name} is given twice; keep one of them")
        filters = replace(filters, **changes)
    return filters


_EXAMPLES = {
    "agent": "NAME", "session": "@last", "workspace": "NAME", "branch": "main", "role": "user", "tool": "Bash",
    "owner": "ann", "machine": "laptop", "project": "github.com/example/shop",
    "path": "src/", "field": "answer", "since": "7d", "until": "2026-01-31", "turn": "3-7", "error": "yes",
    "taken-back": "yes",
}  # fmt: skip


class _TypedFilter(Struct, frozen=True):
    store: Store
    filters: SearchFilters
    filter: Filter
    now: int
    home: str  # for `~`

    def values(self) -> tuple[str, ...]:
        return tuple(part for part in self.filter.value.split(",") if part)

    def exclude(self, name: str, *values: object) -> dict[str, object]:
        unwanted = self.filters.unwanted
        return {"unwanted": replace(unwanted, **{name: (*getattr(unwanted, name), *values)})}


def _narrow_part_of(name: str, unwanted: str) -> Callable[[_TypedFilter], dict[str, object]]:
    """Return a function that filters by part of a name, or excludes it."""

    def narrow(typed: _TypedFilter) -> dict[str, object]:
        if typed.filter.negated:
            return typed.exclude(unwanted, typed.filter.value.lower())
        return {name: typed.filter.value}

    return narrow


def _narrow_agent(typed: _TypedFilter) -> dict[str, object]:
    """Filter by an agent: its name, its title or the beginning of one. Raises UsageError with the closest name."""
    from everturn.sources.agent_names import find_agent
    from everturn.sources.contract import all_sources

    name = typed.filter.value.lower()
    if name not in all_sources():
        name = find_agent(all_sources().values(), name).name
    return typed.exclude("agents", name) if typed.filter.negated else {"agent": name}


def _narrow_workspace(typed: _TypedFilter) -> dict[str, object]:
    folder = resolve_folder(typed.filter.value, home=typed.home)
    return typed.exclude("workspaces", folder) if typed.filter.negated else {"workspace": folder}


def _narrow_session(typed: _TypedFilter) -> dict[str, object]:
    session = resolve_session(typed.store, typed.filter.value)
    return typed.exclude("sessions", session.id) if typed.filter.negated else {"session": session}


def _narrow_role(typed: _TypedFilter) -> dict[str, object]:
    named = [origin for name in typed.values() for origin in _one_of(typed, SPEAKERS, name)]
    if typed.filter.negated:
        left = typed.filters.origins or SAID
        return {"origins": _check_not_empty(typed, tuple(origin for origin in left if origin not in named))}
    return {"origins": (*typed.filters.origins, *named)}


def _narrow_field(typed: _TypedFilter) -> dict[str, object]:
    named = [_one_of(typed, {name: name for name in FIELDS}, name) for name in typed.values()]
    if typed.filter.negated:
        left = typed.filters.fields or tuple(name for name in FIELDS if name != "meta")
        return {"fields": _check_not_empty(typed, tuple(field for field in left if field not in named))}
    return {"fields": (*typed.filters.fields, *named)}


def _check_not_empty(typed: _TypedFilter, some: tuple[str, ...]) -> tuple[str, ...]:
    if not some:
        raise UsageError(
            f"-{typed.filter.name}:{typed.filter.value} leaves nothing to search; remove one of the filters"
        )
    return some


def _narrow_tool(typed: _TypedFilter) -> dict[str, object]:
    if typed.filter.negated:
        return typed.exclude("tools", *(name.lower() for name in typed.values()))
    return {"tools": (*typed.filters.tools, *typed.values())}


def _narrow_time(typed: _TypedFilter) -> dict[str, object]:
    name = typed.filter.name
    if typed.filter.negated:
        raise UsageError(
            f"-{name}: is not supported; use {'until' if name == 'since' else 'since'}:{typed.filter.value}"
        )
    return {name: parse_when(typed.filter.value, typed.now)}


def _narrow_turn(typed: _TypedFilter) -> dict[str, object]:
    found = _TURNS.fullmatch(typed.filter.value)
    if not found or (found[3] and int(found[3]) < int(found[1])):
        raise _filter_mistake(typed, "a number like 12 or a range like 3-7")
    first = int(found[1]) - 1
    last = first if not found[2] else int(found[3]) - 1 if found[3] else _LAST_TURN
    return typed.exclude("turns", (first, last)) if typed.filter.negated else {"turns": (first, last)}


def _narrow_yes_no(typed: _TypedFilter) -> dict[str, object]:
    name = {"error": "errors", "taken-back": "taken_back"}[typed.filter.name]
    return {name: _one_of(typed, YES_NO, typed.filter.value.lower()) is not typed.filter.negated}


def _one_of(typed: _TypedFilter, known: dict[str, T], name: str) -> T:
    if name not in known:
        raise _filter_mistake(typed, f"one of {', '.join(known)}")
    return known[name]


def _filter_mistake(typed: _TypedFilter, valid: str) -> UsageError:
    one = typed.filter
    return UsageError(
        f'{one.name}:{one.value} is not valid; use {valid}, or search for the words with "{one.name} {one.value}"'
    )


_NARROWING: dict[str, Callable[[_TypedFilter], dict[str, object]]] = {
    "agent": _narrow_agent,
    "workspace": _narrow_workspace,
    "branch": _narrow_part_of("branch", "branches"),
    "path": _narrow_part_of("path", "paths"),
    "owner": _narrow_part_of("owner", "owners"),
    "machine": _narrow_part_of("machine", "machines"),
    "project": _narrow_part_of("project", "projects"),
    "session": _narrow_session,
    "role": _narrow_role,
    "field": _narrow_field,
    "tool": _narrow_tool,
    "since": _narrow_time,
    "until": _narrow_time,
    "turn": _narrow_turn,
    "error": _narrow_yes_no,
    "taken-back": _narrow_yes_no,
}
