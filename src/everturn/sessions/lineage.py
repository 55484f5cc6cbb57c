"""How a session hangs together with others: what it came from, what was forked from it, what it started.

Built from the statements sessions make about each other (`LinkRow`). Those come from foreign files: they may name
sessions that are not in the archive, contradict each other or run in circles. A relative that is not in the archive
keeps its id and has no session.

Sessions that everturn made out of others, whichever agents both are of.

The file of such a session cannot say where it comes from: its format is another agent's. So it is kept beside the records,
and survives a rebuild: one row about the new session and one about the old, each found by its own id.
"""

from __future__ import annotations

from collections import deque

import msgspec
from msgspec import Struct

from everturn.model.archive import OFFSPRING, ORIGIN, Call, Descent, KeptRow, LinkRow, Session, descents
from everturn.sessions.lookup import best_match
from everturn.store.contract import Store


def note_descent(store: Store, new: Descent, old: Session, at: int) -> None:
    """Keep that the session `new` was made from `old`. Within a transaction of the caller's."""
    elder = msgspec.structs.replace(new, agent=old.agent, native_id=old.native_id)
    store.keep(KeptRow(ORIGIN, new.agent, new.native_id, "", _descent_json(elder), at))
    store.keep(KeptRow(OFFSPRING, old.agent, old.native_id, f"{new.agent}/{new.native_id}", _descent_json(new), at))


def origin_of(store: Store, session: Session) -> Descent | None:
    """What the session was made from."""
    return next(iter(descents(store.kept(ORIGIN, session.native_id), session.agent)), None)


def offspring_of(store: Store, session: Session) -> list[Descent]:
    """The sessions that were made from this one."""
    return descents(store.kept(OFFSPRING, session.native_id), session.agent)


def _descent_json(descent: Descent) -> str:
    return msgspec.json.encode(descent).decode()


#: Relations that lead from a session to the one it came from, and so to its ancestors.
UPWARD = ("subagent_of", "forked_from", "continues", "output_of", "teammate_of")
_NEIGHBOUR_RELATIONS = ("about", "summary_of")
_DEEPEST = 100


class Relative(Struct, frozen=True):
    """Another session and how it is related; `call` is the call of the elder one that started the younger."""

    relation: str
    native_id: str
    session: Session | None = None
    call: Call | None = None
    shared: int = 0  # messages both hold, for forks


class Lineage(Struct, frozen=True):
    """The relatives of one session."""

    ancestors: list[Relative]  # nearest first
    forks: list[Relative]  # what was forked from it or continues it
    children: list[Relative]  # subagents, saved outputs, in the order of the calls that started them
    others: list[Relative]  # what it is about, what summarises it, its team


def lineage(store: Store, session: Session) -> Lineage:
    """All relatives of a session."""
    own = store.links(session.id)
    younger = _younger_links(store, session)
    return Lineage(
        ancestors=ancestors(store, session),
        forks=_find_forks(store, session, younger),
        children=_find_children(store, session, own, [pair for pair in younger if pair[0].relation in _DOWNWARD]),
        others=[_neighbour_relative(store, session, link) for link in own if link.relation in _NEIGHBOUR_RELATIONS]
        + [_linked_relative(link, one) for link, one in younger if link.relation not in (*_DOWNWARD, *_FORKS)],
    )


_DOWNWARD = ("subagent_of", "output_of")
_FORKS = ("forked_from", "continues")


def ancestors(store: Store, session: Session) -> list[Relative]:
    """What the session came from, nearest first, as far as the archive knows. It may go on from several at once."""
    found: list[Relative] = []
    seen, todo = {session.native_id}, deque([session])
    while todo and len(found) < _DEEPEST:
        current = todo.popleft()
        for elder in _find_elders(store, current):
            if elder.native_id in seen:
                continue
            seen.add(elder.native_id)
            found.append(elder)
            todo += [elder.session] if elder.session is not None else []
    return found


def find_session_by_id(store: Store, agent: str, native_id: str) -> Session | None:
    """The session with that native id, of the same agent."""
    editions = store.sessions_of(agent, native_id)
    return best_match(editions) if editions else None


def _find_elders(store: Store, session: Session) -> list[Relative]:
    """What it was made from, which no file says, or what its file says."""
    made = origin_of(store, session)
    if made is not None:
        return [_made_from_relative(store, made)]
    links = _upward_links(store, session)
    return [
        Relative(one.relation, one.native_id, find_session_by_id(store, session.agent, one.native_id), shared=one.n)
        for one in links
    ]


def _made_from_relative(store: Store, descent: Descent) -> Relative:
    relation = "forked_from" if descent.relation == "forked_from" else "continues"
    return Relative(relation, descent.native_id, find_session_by_id(store, descent.agent, descent.native_id))


def _find_forks(store: Store, session: Session, younger: list[tuple[LinkRow, Session]]) -> list[Relative]:
    """By the word of their files, and those that were made from it; each once."""
    told = [_linked_relative(link, one) for link, one in younger if link.relation in _FORKS]
    known = {one.native_id for one in told}
    return told + [
        _made_from_relative(store, one) for one in offspring_of(store, session) if one.native_id not in known
    ]


def _upward_links(store: Store, session: Session) -> list[LinkRow]:
    """The links of the relation that says most: one session, or all that it goes on from."""
    links = [link for link in store.links(session.id) if link.relation in UPWARD and link.native_id]
    relation = min((link.relation for link in links), key=UPWARD.index, default="")
    best = [link for link in links if link.relation == relation]
    if best:
        return best if relation == "continues" else best[:1]
    return [LinkRow(session.id, "subagent_of", session.parent)] if session.parent else []


def _younger_links(store: Store, session: Session) -> list[tuple[LinkRow, Session]]:
    """The sessions that say something of this one, one edition of each."""
    found: dict[tuple[str, str], list[tuple[LinkRow, Session]]] = {}
    for link in store.links_to(session.native_id):
        if link.relation == "spawned" or link.session == session.id:
            continue
        one = store.session(link.session)[0]
        if one.agent == session.agent and one.native_id != session.native_id:
            found.setdefault((link.relation, one.native_id), []).append((link, one))
    return [max(pairs, key=lambda pair: (pair[1].state == "current", pair[1].n_messages)) for pairs in found.values()]


def _linked_relative(link: LinkRow, session: Session) -> Relative:
    return Relative(link.relation, session.native_id, session, shared=link.n)


def _neighbour_relative(store: Store, session: Session, link: LinkRow) -> Relative:
    return Relative(link.relation, link.native_id, find_session_by_id(store, session.agent, link.native_id))


def _find_children(
    store: Store, session: Session, own: list[LinkRow], younger: list[tuple[LinkRow, Session]]
) -> list[Relative]:
    """What the session started, in the order of the calls; also what only it knows of."""
    spawned = [link for link in own if link.relation == "spawned"]
    if not spawned and not younger:
        return []
    calls = {call.call_id: call for call in store.calls(session.id) if call.call_id}
    spawned.sort(key=lambda link: calls[link.call_id].seq if link.call_id in calls else -1)
    joined = _calls_by_child(spawned, younger)
    found = [Relative(link.relation, one.native_id, one, calls.get(joined[one.id])) for link, one in younger]
    known = {_id_tail(one.native_id) for one in found}
    for link in {_id_tail(link.native_id): link for link in spawned if link.native_id}.values():
        if _id_tail(link.native_id) not in known:
            child = find_session_by_id(store, session.agent, link.native_id)
            found.append(Relative("subagent_of", link.native_id, child, calls.get(link.call_id)))
    return sorted(found, key=lambda one: (one.call is None, one.call.seq if one.call else 0, one.native_id))


def _calls_by_child(spawned: list[LinkRow], younger: list[tuple[LinkRow, Session]]) -> dict[int, str]:
    """By child, the id of the call that started it: by its own word, by the parent's, else by the prompt both know."""
    named = {_id_tail(link.native_id): link.call_id for link in spawned if link.native_id}
    joined = {child.id: link.call_id or named.get(_id_tail(child.native_id), "") for link, child in younger}
    taken = set(joined.values())
    alike: dict[int, list[str]] = {}
    for link in reversed(spawned):
        if link.hint and link.call_id not in taken:
            alike.setdefault(link.hint, []).append(link.call_id)
    for link, child in sorted(younger, key=lambda pair: (pair[1].started or 0, pair[1].id)):
        # The same prompt may be given to several: each gets a call of its own, in order of time.
        if not joined[child.id] and alike.get(link.hint):
            joined[child.id] = alike[link.hint].pop()
    return joined


def _id_tail(native_id: str) -> str:
    """Some records give only the part of an id after the last `/`."""
    return native_id.rpartition("/")[2]
