"""The request that a page or operation gets, and the replies it returns. Nothing here knows the web server.

`WebRequest` validates parameters strictly: an invalid one is a UsageError, never a guess. All text of the archive goes into
a page through its `text` and `line`: secrets masked, control and reordering characters removed; the templates escape it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from everturn.errors import NothingFound, UsageError
from everturn.model.archive import Session, SessionText
from everturn.text.printable import one_line, printable
from everturn.text.times import parse_when

if TYPE_CHECKING:
    from everturn.secrets.redaction import Cleaner
    from everturn.sessions.messages import Sources
    from everturn.store.contract import Store
    from everturn.web.site import Site

_LONGEST_PARAMETER = 2000  # characters of a parameter


class PageReply(Struct, frozen=True):
    """A page to render: the template, its values, the title of the window."""

    template: str
    values: Mapping[str, Any]
    title: str = ""
    status: int = 200


class Bytes(Struct, frozen=True):
    """A reply that is not a page: a picture, or a file to save under a name."""

    kind: str
    data: bytes
    name: str = ""


class RedirectReply(Struct, frozen=True):
    to: str


class WebRequest(Struct):
    store: Store
    site: Site
    given: Mapping[str, str]  # the query; of repeated parameters the last
    pairs: Sequence[tuple[str, str]]  # the query with repeated parameters
    path: Mapping[str, Any]  # parameters in the path
    body: Mapping[str, Any]  # of a change
    now: int
    clean: Cleaner

    @property
    def sources(self) -> Sources:
        return self.site.sources

    @property
    def is_part(self) -> bool:
        """Whether an open page requests only its changing part."""
        return self.given.get("part") == "1"

    # parameters -----------------------------------------------------------------------------------------------------
    def word(self, name: str) -> str:
        """Return a parameter, "" without one. Raises UsageError when it is too long."""
        value = self.given.get(name, "").strip()
        if len(value) > _LONGEST_PARAMETER:
            raise UsageError(f"{name} is too long; {_LONGEST_PARAMETER} characters is the limit")
        return value.replace("\0", "")

    def number(self, name: str, default: int, least: int = 0, most: int = 1 << 40) -> int:
        """Return an integer parameter within limits. Raises UsageError."""
        value = self.given.get(name, "").strip()
        if not value:
            return default
        if not value.isascii() or not value.isdigit() or len(value) > 15 or not least <= int(value) <= most:
            raise UsageError(f"{name}={value[:40]!r} is not a number from {least} to {most}")
        return int(value)

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """Return a parameter that is one of `allowed`, or "". Raises UsageError."""
        value = self.word(name)
        if value and value not in allowed:
            raise UsageError(f"{name}={value[:40]!r} is not valid; use one of {', '.join(allowed)}")
        return value

    def choices(self, name: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Return a repeated parameter with values of `allowed`. Raises UsageError."""
        values = tuple(value for key, value in self.pairs if key == name and value)
        for value in values:
            if value not in allowed:
                raise UsageError(f"{name}={value[:40]!r} is not valid; use one of {', '.join(allowed)}")
        return tuple(dict.fromkeys(values))

    def when(self, name: str) -> int | None:
        """Return a time parameter. Raises UsageError."""
        value = self.word(name)
        return parse_when(value, self.now) if value else None

    def session(self) -> tuple[Session, SessionText]:
        """Return the session whose number is in the path. Raises NothingFound."""
        number = self.path["session"]
        if not 0 < number < 1 << 62:
            raise NothingFound("no such session; the list of sessions has all of them")
        return self.store.session(number)

    # text -----------------------------------------------------------------------------------------------------------
    def text(self, value: str, keep: str = "\n\t") -> str:
        """Return text of the archive without secrets and control characters."""
        return printable(self.clean(value), keep)

    def line(self, value: str, width: int = 120) -> str:
        """Return the beginning on one line. Half a secret is not recognized, so the cut comes last."""
        return one_line(self.clean(value), width)


#: Functions that draw a page, and that answer an operation.
Draw = Callable[[WebRequest], "PageReply | RedirectReply | Bytes"]
Answer = Callable[[WebRequest], Any]
