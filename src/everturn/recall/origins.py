"""Sessions that everturn made out of others, whichever agents both are of.

The file of such a session cannot say where it comes from: its format is another agent's. So it is kept beside the records,
and survives a rebuild: one row about the new session and one about the old, each found by its own id.
"""

from __future__ import annotations

import msgspec

from everturn.model.archive import KeptRow, Session
from everturn.model.descent import OFFSPRING, ORIGIN, Descent, descents
from everturn.store import Store


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
