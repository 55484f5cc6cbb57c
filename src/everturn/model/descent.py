"""A session that everturn made out of another one: what is kept about it, since its file cannot say so."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from everturn.model.archive import KeptRow

#: Kinds of kept rows: about the new session, and about the one it was made from.
ORIGIN, OFFSPRING = "origin", "offspring"

#: `MessageRow.inherited` of what went over from the origin. A copy that a file has by itself has 1, and may become the
#: owner of its words when the other one goes; these never do as long as their origin is in the archive.
HANDED_OVER = 2


class Descent(Struct, frozen=True):
    """Another session that one was made from, or that was made from it."""

    agent: str
    native_id: str
    relation: str  # forked_from: in the same agent | converted_from: for another one | repaired_from
    upto: int | None = None  # the last turn that went over, from 0
    messages: int = 0  # how many the new session began with


def descents(rows: Iterable[KeptRow], agent: str) -> list[Descent]:
    """What kept rows about the sessions of an agent say."""
    return [msgspec.json.decode(row.value, type=Descent) for row in rows if row.agent == agent]
