"""Sessions that everturn made out of others, whichever agents both are of.

The file of such a session cannot say where it comes from: its format is another agent's. So it is kept beside the records,
and survives a rebuild: one row about the new session and one about the old, each found by its own id.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from everturn.model.archive import Kept, Session
from everturn.store import Store

_ORIGIN, _OFFSPRING = "origin", "offspring"


class Descent(Struct, frozen=True):
    """Another session that one was made from, or that was made from it."""

    agent: str
    native_id: str
    relation: str  # forked_from: in the same agent | converted_from: for another one | repaired_from
    upto: int | None = None  # the last turn that went over, from 0


def note_descent(store: Store, new: tuple[str, str], old: Session, relation: str, upto: int | None, at: int) -> None:
    """Keep that the session `new` (agent, native id) was made from `old`. Within a transaction of the caller's."""
    agent, native_id = new
    elder = msgspec.json.encode(Descent(old.agent, old.native_id, relation, upto)).decode()
    younger = msgspec.json.encode(Descent(agent, native_id, relation, upto)).decode()
    store.keep(Kept(_ORIGIN, agent, native_id, "", elder, at))
    store.keep(Kept(_OFFSPRING, old.agent, old.native_id, f"{agent}/{native_id}", younger, at))


def origin_of(store: Store, session: Session) -> Descent | None:
    """What the session was made from."""
    return next(iter(_kept(store, _ORIGIN, session)), None)


def offspring_of(store: Store, session: Session) -> list[Descent]:
    """The sessions that were made from this one."""
    return _kept(store, _OFFSPRING, session)


def _kept(store: Store, kind: str, session: Session) -> list[Descent]:
    rows = store.kept(kind, session.native_id)
    return [msgspec.json.decode(row.value, type=Descent) for row in rows if row.agent == session.agent]
