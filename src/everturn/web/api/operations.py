"""An operation, and what several of them need."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from everturn.errors import NothingFound, UsageError
from everturn.model.archive import Session
from everturn.recall.sessions import resolve_session
from everturn.web.asking import Answer, WebRequest

T = TypeVar("T")

#: How a page names a session, whose id may hold anything: by its number.
_NUMBER = "number:"


class Parameter(Struct, frozen=True):
    """One word of the query."""

    name: str
    about: str
    type: str = "string"
    required: bool = False
    several: bool = False


class Operation(Struct, frozen=True):
    """One thing that can be asked."""

    path: str
    summary: str
    run: Answer
    answer: Any  # the type of the answer
    parameters: tuple[Parameter, ...] = ()
    method: str = "GET"
    body: Any = None  # the type of what is sent, for a change
    counts: bool = False  # it may have to bring the counts of the analytics up to date first


SESSION = Parameter(
    "session", "An id, any unique beginning of one, @last, or number:N as pages have it.", required=True
)


def list_frame(name: str, items: Any, next: str = "", **more: Any) -> dict[str, Any]:
    """The frame of every list."""
    return {"schema": f"everturn/{name}@1", **more, "items": list(items), "next": next or None}


def session_of(asked: WebRequest) -> Session:
    """The session that is named. Raises NothingFound, Usage."""
    wanted = asked.word("session")
    if not wanted:
        raise UsageError("no session is named; add session=, with an id, any unique beginning of one, or @last")
    if not wanted.startswith(_NUMBER):
        return resolve_session(asked.store, wanted)
    number = wanted.removeprefix(_NUMBER)
    if not number.isascii() or not number.isdigit() or len(number) > 15:
        raise NothingFound(f"{wanted[:40]!r} is no session")
    return asked.store.session(int(number))[0]


def body_of(asked: WebRequest, type: type[T]) -> T:
    """What was sent, as it must be. Raises Usage."""
    try:
        return msgspec.convert(asked.body, type)
    except msgspec.ValidationError as error:
        raise UsageError(f"the request does not fit: {error}") from error
