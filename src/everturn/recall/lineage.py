"""How a session hangs together with others: what it came from, what was forked from it, what it started.

Built from the statements sessions make about each other (`LinkRow`). Those come from foreign files: they may name
sessions that are not in the archive, contradict each other or run in circles. A relative that is not in the archive
keeps its id and has no session.
"""

from __future__ import annotations

from msgspec import Struct

from everturn.model.archive import Call, LinkRow, Session
from everturn.recall.sessions import best
from everturn.store import Store

#: Relations that lead from a session to the one it came from, and so to its ancestors.
UPWARD = ("subagent_of", "forked_from", "continues", "output_of", "teammate_of")
_BESIDE = ("about", "summary_of")
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
    younger = _younger(store, session)
    return Lineage(
        ancestors=ancestors(store, session),
        forks=[_relative(link, one) for link, one in younger if link.relation in _FORKS],
        children=_children(store, session, own, [pair for pair in younger if pair[0].relation in _DOWNWARD]),
        others=[_beside(store, session, link) for link in own if link.relation in _BESIDE]
        + [_relative(link, one) for link, one in younger if link.relation not in (*_DOWNWARD, *_FORKS)],
    )


_DOWNWARD = ("subagent_of", "output_of")
_FORKS = ("forked_from", "continues")


def ancestors(store: Store, session: Session) -> list[Relative]:
    """What the session came from, nearest first, as far as the archive knows."""
    found: list[Relative] = []
    seen = {session.native_id}
    current: Session | None = session
    while current is not None and len(found) < _DEEPEST:
        link = _upward(store, current)
        if link is None or link.native_id in seen:
            break
        seen.add(link.native_id)
        elder = find(store, current.agent, link.native_id)
        found.append(Relative(link.relation, link.native_id, elder, shared=link.n))
        current = elder
    return found


def find(store: Store, agent: str, native_id: str) -> Session | None:
    """The session with that native id, of the same agent."""
    editions = store.sessions_of(agent, native_id)
    return best(editions) if editions else None


def _upward(store: Store, session: Session) -> LinkRow | None:
    links = [link for link in store.links(session.id) if link.relation in UPWARD and link.native_id]
    if links:
        return min(links, key=lambda link: UPWARD.index(link.relation))
    if session.parent:
        return LinkRow(session.id, "subagent_of", session.parent)
    return None


def _younger(store: Store, session: Session) -> list[tuple[LinkRow, Session]]:
    """The sessions that say something of this one, one edition of each."""
    found: dict[tuple[str, str], list[tuple[LinkRow, Session]]] = {}
    for link in store.links_to(session.native_id):
        if link.relation == "spawned" or link.session == session.id:
            continue
        one = store.session(link.session)[0]
        if one.agent == session.agent and one.native_id != session.native_id:
            found.setdefault((link.relation, one.native_id), []).append((link, one))
    return [max(pairs, key=lambda pair: (pair[1].state == "current", pair[1].n_messages)) for pairs in found.values()]


def _relative(link: LinkRow, session: Session) -> Relative:
    return Relative(link.relation, session.native_id, session, shared=link.n)


def _beside(store: Store, session: Session, link: LinkRow) -> Relative:
    return Relative(link.relation, link.native_id, find(store, session.agent, link.native_id))


def _children(
    store: Store, session: Session, own: list[LinkRow], younger: list[tuple[LinkRow, Session]]
) -> list[Relative]:
    """What the session started, in the order of the calls; also what only it knows of."""
    spawned = [link for link in own if link.relation == "spawned"]
    if not spawned and not younger:
        return []
    calls = {call.call_id: call for call in store.calls(session.id) if call.call_id}
    spawned.sort(key=lambda link: calls[link.call_id].seq if link.call_id in calls else -1)
    joined = _joined(spawned, younger)
    found = [Relative(link.relation, one.native_id, one, calls.get(joined[one.id])) for link, one in younger]
    known = {_tail(one.native_id) for one in found}
    for link in {_tail(link.native_id): link for link in spawned if link.native_id}.values():
        if _tail(link.native_id) not in known:
            child = find(store, session.agent, link.native_id)
            found.append(Relative("subagent_of", link.native_id, child, calls.get(link.call_id)))
    return sorted(found, key=lambda one: (one.call is None, one.call.seq if one.call else 0, one.native_id))


def _joined(spawned: list[LinkRow], younger: list[tuple[LinkRow, Session]]) -> dict[int, str]:
    """By child, the id of the call that started it: by its own word, by the parent's, else by the prompt both know."""
    named = {_tail(link.native_id): link.call_id for link in spawned if link.native_id}
    joined = {child.id: link.call_id or named.get(_tail(child.native_id), "") for link, child in younger}
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


def _tail(native_id: str) -> str:
    """Some records give only the part of an id after the last `/`."""
    return native_id.rpartition("/")[2]
