"""What a page or an operation is given, and what it gives back. Nothing here knows of the web server.

`WebRequest` reads parameters strictly: what cannot be meant is a Usage error with a sentence, never a guess. Its `text` and
`line` are the way of every word of the archive into a page: secrets taken out, nothing invisible or reordering left; the
templates escape them.
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
    """A page to be drawn: the template, its values, the heading of the window."""

    template: str
    values: Mapping[str, Any]
    title: str = ""
    status: int = 200


class Bytes(Struct, frozen=True):
    """Something that is no page: a picture."""

    kind: str
    data: bytes


class RedirectReply(Struct, frozen=True):
    """What was asked for is at another address."""

    to: str


class WebRequest(Struct):
    """One request."""

    store: Store
    site: Site
    given: Mapping[str, str]  # of the query; of several the last
    pairs: Sequence[tuple[str, str]]  # the same with all of them
    path: Mapping[str, Any]  # parts of the path
    body: Mapping[str, Any]  # of a request that changes something
    now: int
    clean: Cleaner

    @property
    def sources(self) -> Sources:
        """Every source."""
        return self.site.sources

    @property
    def is_part(self) -> bool:
        """Whether only the changing part of a page is wanted, to be put into one that is there."""
        return self.given.get("part") == "1"

    # parameters -----------------------------------------------------------------------------------------------------
    def word(self, name: str) -> str:
        """A parameter as it was typed, "" when there is none."""
        value = self.given.get(name, "").strip()
        if len(value) > _LONGEST_PARAMETER:
            raise UsageError(f"{name} is too long; {_LONGEST_PARAMETER} characters are the most")
        return value.replace("\0", "")

    def number(self, name: str, default: int, least: int = 0, most: int = 1 << 40) -> int:
        """A whole number within limits."""
        value = self.given.get(name, "").strip()
        if not value:
            return default
        if not value.isascii() or not value.isdigit() or len(value) > 15 or not least <= int(value) <= most:
            raise UsageError(f"{name}={value[:40]!r} is not a number from {least} to {most}")
        return int(value)

    def choice(self, name: str, allowed: tuple[str, ...]) -> str:
        """One of some words, or ""."""
        value = self.word(name)
        if value and value not in allowed:
            raise UsageError(f"{name}={value[:40]!r} means nothing here; it is one of {', '.join(allowed)}")
        return value

    def choices(self, name: str, allowed: tuple[str, ...]) -> tuple[str, ...]:
        """Several of some words."""
        values = tuple(value for key, value in self.pairs if key == name and value)
        for value in values:
            if value not in allowed:
                raise UsageError(f"{name}={value[:40]!r} means nothing here; it is one of {', '.join(allowed)}")
        return tuple(dict.fromkeys(values))

    def when(self, name: str) -> int | None:
        """A time, as people write it."""
        value = self.word(name)
        return parse_when(value, self.now) if value else None

    def session(self) -> tuple[Session, SessionText]:
        """The session whose number stands in the path."""
        number = self.path["session"]
        if not 0 < number < 1 << 62:
            raise NothingFound("there is no such session; the list of sessions has those there are")
        return self.store.session(number)

    # words ----------------------------------------------------------------------------------------------------------
    def text(self, value: str, keep: str = "\n\t") -> str:
        """Words of the archive, fit to be shown."""
        return printable(self.clean(value), keep)

    def line(self, value: str, width: int = 120) -> str:
        """Their beginning on one line. A secret is known by its whole: the cut comes last."""
        return one_line(self.clean(value), width)


#: What draws a page, and what answers a program.
Draw = Callable[[WebRequest], "PageReply | RedirectReply | Bytes"]
Answer = Callable[[WebRequest], Any]
