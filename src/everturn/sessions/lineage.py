"""Relatives of a session: what it came from, what was forked from it, what it started.

Built from the statements of sessions about each other (`LinkRow`). They come from foreign files, so they may name
sessions that are not in the archive, contradict each other or form cycles. A session that everturn made out of another
cannot say so in its file: its `Descent` is therefore kept, and survives a rebuild: one row about the new session and one
about the old.
"""

from __future__ import annotations

from collections import deque

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.analytics import SUBAGENT_KINDS
from everturn.model.archive import OFFSPRING, ORIGIN, Call, Descent, KeptRow, LinkRow, Session, descents
from everturn.sessions.lookup import RUNNING, best_match
from everturn.store.contract import SessionFilter, Store


def note_descent(store: Store, new: Descent, old: Session, at: int) -> None:
    """Record that the session `new` was made from `old`. The caller holds the transaction."""
    elder = msgspec.structs.replace(new, agent=old.agent, native_id=old.native_id)
    store.keep(KeptRow(ORIGIN, new.agent, new.native_id, "", _descent_json(elder), at))
    store.keep(KeptRow(OFFSPRING, old.agent, old.native_id, f"{new.agent}/{new.native_id}", _descent_json(new), at))


def origin_of(store: Store, session: Session) -> Descent | None:
    return next(iter(descents(store.kept(ORIGIN, session.native_id), session.agent)), None)


def offspring_of(store: Store, session: Session) -> list[Descent]:
    return descents(store.kept(OFFSPRING, session.native_id), session.agent)


def _descent_json(descent: Descent) -> str:
    return msgspec.json.encode(descent).decode()


#: A relation in words before the name of a relative: as an elder of the session, or as a younger one.
_RELATION_WORDS = {
    ("subagent_of", True): "subagent of",
    ("subagent_of", False): "subagent",
    ("forked_from", True): "forked from",
    ("forked_from", False): "forked into",
    ("continues", False): "continued by",
    ("output_of", True): "saved output of",
    ("output_of", False): "saved output",
    ("teammate_of", True): "in the team of",
}
#: Relations that lead from a session to its ancestors, the most telling first.
UPWARD = ("subagent_of", "forked_from", "continues", "output_of", "teammate_of")
_NEIGHBOUR_RELATIONS = ("about", "summary_of")
_DEEPEST = 100


class Relative(Struct, frozen=True):
    """Another session and its relation; `call` is the call of the older one that started the younger."""

    relation: str
    native_id: str
    session: Session | None = None
    call: Call | None = None
    shared: int = 0  # messages both contain, for forks


def relation_words(one: Relative, is_elder: bool = False) -> str:
    """Return what a relative is to the session, in words before its name."""
    return _RELATION_WORDS.get((one.relation, is_elder)) or one.relation.replace("_", " ")


class Lineage(Struct, frozen=True):
    ancestors: list[Relative]  # nearest first
    forks: list[Relative]  # sessions forked from it or continuing it
    children: list[Relative]  # subagents, saved outputs, in the order of the calls that started them
    others: list[Relative]  # sessions it is about, its summaries, its team

    def children_by_call(self) -> dict[tuple[int, int], list[Relative]]:
        """Return the children by the message and the block of the call that started them."""
        found: dict[tuple[int, int], list[Relative]] = {}
        for one in self.children:
            if one.call is not None:
                found.setdefault((one.call.seq, one.call.idx), []).append(one)
        return found


def lineage(store: Store, session: Session) -> Lineage:
    own = store.links(session.id)
    younger = _younger_links(store, session)
    linked = [_linked_relative(link, one) for link, one in younger if link.relation in _FORKS]
    known = {one.native_id for one in linked}
    made = offspring_of(store, session)
    return Lineage(
        ancestors=ancestors(store, session),
        forks=[*linked, *(_descent_relative(store, one) for one in made if one.native_id not in known)],
        children=_find_children(store, session, own, [pair for pair in younger if pair[0].relation in _DOWNWARD]),
        others=[
            Relative(link.relation, link.native_id, find_session_by_id(store, session.agent, link.native_id))
            for link in own
            if link.relation in _NEIGHBOUR_RELATIONS
        ]
        + [_linked_relative(link, one) for link, one in younger if link.relation not in (*_DOWNWARD, *_FORKS)],
    )


_DOWNWARD = ("subagent_of", "output_of")
_FORKS = ("forked_from", "continues")


def ancestors(store: Store, session: Session) -> list[Relative]:
    """Return the sessions it came from, nearest first, as far as known. A session may continue several at once."""
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
    versions = store.sessions_of(agent, native_id)
    return best_match(versions) if versions else None


def _find_elders(store: Store, session: Session) -> list[Relative]:
    """Return the session it was made from, or else those that its file names."""
    origin = origin_of(store, session)
    if origin is not None:
        return [_descent_relative(store, origin)]
    links = _upward_links(store, session)
    return [Relative(one.relation, one.native_id, _find_elder(store, session, one), shared=one.n) for one in links]


def _find_elder(store: Store, session: Session, link: LinkRow) -> Session | None:
    """Return the session that a link names: of the same agent, or of any if it is continued by another."""
    found = find_session_by_id(store, session.agent, link.native_id)
    if found is not None or link.relation != "continues":
        return found
    others = [one for one in store.sessions_like(link.native_id) if one.native_id == link.native_id]
    return best_match(others) if others else None


def _descent_relative(store: Store, descent: Descent) -> Relative:
    relation = "forked_from" if descent.relation == "forked_from" else "continues"
    return Relative(relation, descent.native_id, find_session_by_id(store, descent.agent, descent.native_id))


def _upward_links(store: Store, session: Session) -> list[LinkRow]:
    """Return the links of the most telling relation: one session, or all that it continues."""
    links = [link for link in store.links(session.id) if link.relation in UPWARD and link.native_id]
    relation = min((link.relation for link in links), key=UPWARD.index, default="")
    best = [link for link in links if link.relation == relation]
    if best:
        return best if relation == "continues" else best[:1]
    return [LinkRow(session.id, "subagent_of", session.parent)] if session.parent else []


def _younger_links(store: Store, session: Session) -> list[tuple[LinkRow, Session]]:
    """Return the sessions that name this one, with their links, one version of each."""
    found: dict[tuple[str, str], list[tuple[LinkRow, Session]]] = {}
    for link in store.links_to(session.native_id):
        if link.relation == "spawned" or link.session == session.id:
            continue
        one = store.session(link.session)[0]
        is_kin = one.agent == session.agent or link.relation == "continues"
        if is_kin and one.native_id != session.native_id:
            found.setdefault((link.relation, one.native_id), []).append((link, one))
    return [max(pairs, key=lambda pair: (pair[1].state == "current", pair[1].n_messages)) for pairs in found.values()]


def _linked_relative(link: LinkRow, session: Session) -> Relative:
    return Relative(link.relation, session.native_id, session, shared=link.n)


def _find_children(
    store: Store, session: Session, own: list[LinkRow], younger: list[tuple[LinkRow, Session]]
) -> list[Relative]:
    """Return the sessions it started, in the order of the calls, also those not in the archive."""
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
    """Map each child to the id of the call that started it: as it says, as the parent says, else by their common prompt."""
    named = {_id_tail(link.native_id): link.call_id for link in spawned if link.native_id}
    joined = {child.id: link.call_id or named.get(_id_tail(child.native_id), "") for link, child in younger}
    taken = set(joined.values())
    alike: dict[int, list[str]] = {}
    for link in reversed(spawned):
        if link.hint and link.call_id not in taken:
            alike.setdefault(link.hint, []).append(link.call_id)
    for link, child in sorted(younger, key=lambda pair: (pair[1].started or 0, pair[1].id)):
        # Several children may have the same prompt: each gets its own call, in order of time.
        if not joined[child.id] and alike.get(link.hint):
            joined[child.id] = alike[link.hint].pop()
    return joined


def _id_tail(native_id: str) -> str:
    """Return the part of an id after the last `/`, all that some records have."""
    return native_id.rpartition("/")[2]


_MOST_RUNNING = 200


class RunningSession(Struct, frozen=True):
    """A session that is running, the subagents of it that are, and its calls without a result."""

    session: Session
    children: list[Relative]
    open_calls: list[Call]


def find_running(store: Store, session_filter: SessionFilter, now: int) -> list[RunningSession]:
    """Return the main sessions that are running, the newest first.

    While a subagent works, nothing is written about the session that started it: that is running, too. A subagent has ended
    when its call has a result.
    """
    kinds = ("main", *SUBAGENT_KINDS)
    rows, _ = store.sessions(replace(session_filter, kinds=kinds, since=now - RUNNING), _MOST_RUNNING)
    found: dict[int, Session] = {}
    for session, _ in rows:
        top = session if session.kind == "main" else _top_of(store, session)
        if top is not None:
            found.setdefault(top.id, top)
    return [_running(store, session, now) for session in found.values()]


def _running(store: Store, session: Session, now: int) -> RunningSession:
    children = [
        one
        for one in lineage(store, session).children
        if one.session is not None
        and one.session.kind in SUBAGENT_KINDS
        and (one.call is None or one.call.status == "open")
        and (one.session.ended or 0) >= now - RUNNING
    ]
    waiting = [call for calls in store.tail(session.id).open_calls.values() for call in calls if call.status == "open"]
    last = session.n_turns - 1
    return RunningSession(session, children, [call for call in waiting if call.turn == last])


def _top_of(store: Store, session: Session) -> Session | None:
    """Return the main session that a subagent works for."""
    elders = [one.session for one in ancestors(store, session) if one.relation == "subagent_of"]
    return next((one for one in reversed(elders) if one is not None and one.kind == "main"), None)
