"""Sessions that everturn made out of others hold the same words: they are shown there, found and counted once.

Their files look like any other; how many messages they began with is kept beside the records (`model.descent`), so that a
rebuild marks the same ones. When the origin is forgotten, what went over from it goes too, or becomes their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from everturn.model.archive import Session, SessionGrowth
from everturn.model.descent import HANDED_OVER, OFFSPRING, ORIGIN, Descent, descents
from everturn.store import Store


def mark_handed_over(store: Store, session: Session, growth: SessionGrowth) -> None:
    """Mark what of these new messages went over from another session, if that is in the archive."""
    if not growth.messages:
        return
    origin = next(iter(descents(store.kept(ORIGIN, session.native_id), session.agent)), None)
    if origin is None or growth.messages[0].seq >= origin.messages:
        return
    if not store.sessions_of(origin.agent, origin.native_id):
        return
    for message in growth.messages:
        if message.seq < origin.messages:
            message.inherited = HANDED_OVER


def find_offspring(store: Store, sessions: Sequence[Session]) -> list[Descent]:
    """What was made out of these sessions, and out of that again, in the archive or not."""
    waiting = [(row.agent, row.native_id) for row in sessions]
    known, found = set(waiting), []
    while waiting:
        agent, native_id = waiting.pop()
        for child in descents(store.kept(OFFSPRING, native_id), agent):
            if (child.agent, child.native_id) not in known:
                known.add((child.agent, child.native_id))
                waiting.append((child.agent, child.native_id))
                found.append(child)
    return found


def find_made_from(store: Store, sessions: Sequence[Session]) -> list[Session]:
    """The sessions of the archive that were made out of these."""
    return [row for one in find_offspring(store, sessions) for row in store.sessions_of(one.agent, one.native_id)]
