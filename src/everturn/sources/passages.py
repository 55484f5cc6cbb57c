"""Splits a text that only grows (or is written anew) into passages, whatever happened to it.

Shared by the formats that are Markdown. A format says at which line a passage begins; `Passages.split` promises:

- Passages follow each other without a gap: every byte is in one of them. Each begins at a line.
- A passage is given once the next one begins, or at the end of the file. What comes later without a beginning of its own
  continues the last one. Reading in pieces that do not end the file gives the same passages as reading at once.
- Nothing here raises on content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from copy import copy
from typing import Generic, Protocol, TypeVar


class PassageState(Protocol):
    """What a format knows of the lines before: flat, and its own but for one field."""

    begun: bool  # the first line to come has been told already


PassageStateT = TypeVar("PassageStateT", bound=PassageState)

#: Is told every line, without its end, in order; may change the state; says whether a passage begins with the line.
Opens = Callable[[PassageStateT, str], bool]


class Passages(Generic[PassageStateT]):
    """Walks one text, piece by piece; `state` is all that a later one needs."""

    def __init__(
        self, opens: Opens[PassageStateT], state: PassageStateT, alike: re.Pattern[bytes] | None = None
    ) -> None:
        """`alike` matches stretches of whole lines of which it is enough to tell the first."""
        self._opens = opens
        self._alike = alike
        self.state = state
        self.consumed = 0
        self.continues = False  # the passage last given has no beginning of its own: it is the rest of the one before
        self.tail: tuple[int, int] | None = None  # start and size of an incomplete last line that was left

    def split(self, data: bytes, base: int, last: bool, whole_lines: bool = False) -> Iterator[tuple[int, bytes]]:
        """The passages of a piece that starts at `base`; with `whole_lines` a line without its end is left for later."""
        self.consumed, self.tail = 0, None
        begin, before = 0, copy(self.state)
        end = data.rfind(b"\n") + 1 if whole_lines else len(data)
        for start in self._openings(data, last and not whole_lines):
            self.consumed = start
            yield base + begin, data[begin:start]
            begin, before, self.continues = start, copy(self.state), False
            before.begun = True
        if not last:
            self.state = before
            return
        self.consumed = end
        if end > begin:
            yield base + begin, data[begin:end]
        if end < len(data):
            self.tail = base + end, len(data) - end

    def _openings(self, data: bytes, unended: bool) -> Iterator[int]:
        """Where passages begin, beyond the first."""
        start, find, opens, state, alike = 0, data.find, self._opens, self.state, self._alike
        self.continues = False
        if state.begun:
            start, state.begun = find(b"\n") + 1, False
        while (end := find(b"\n", start)) >= 0 or (unended and start < len(data)):
            end = end if end >= 0 else len(data)
            if opens(state, data[start:end].decode("utf-8", "replace").rstrip("\r")):
                if start:
                    yield start
            elif not start:
                self.continues = True
            run = alike.match(data, start) if alike is not None else None
            start = run.end() if run is not None else end + 1


def text_of(raw: bytes) -> tuple[str, bool]:
    """The text of a passage, and whether it was what it should be."""
    try:
        return raw.decode(), True
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), False
