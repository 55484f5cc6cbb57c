"""Server-sent events: bytes as they arrive, split anywhere, become events.

Follows the WHATWG rules for the stream: lines end with CR, LF or both, a BOM at the start is skipped, comments are skipped,
several `data` lines are joined, an empty line ends an event.
"""

from __future__ import annotations

import re

from msgspec import Struct

_END = re.compile(rb"\r\n|\r|\n")


class ServerEvent(Struct, frozen=True):
    """One event: its type and its data."""

    name: str
    data: str


class ServerEventStream:
    """Reads one stream piece by piece. The work follows the bytes, however long a line is."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []  # of the line that has not ended
        self._name = ""
        self._data: list[str] = []
        self._is_first = True

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that are complete with this piece."""
        waits = self._pieces and self._pieces[-1].endswith(b"\r")
        if not waits and not _END.search(data):
            self._pieces += [data] if data else []
            return []
        lines, rest = _split_lines(b"".join([*self._pieces, data]))
        self._pieces = [rest] if rest else []
        return [event for line in lines for event in self._line(line)]

    def last(self) -> list[ServerEvent]:
        """At the end of a stream: the event whose empty line did not come. It may be half of one."""
        return self.feed(b"\n\n\n")

    def _line(self, line: bytes) -> list[ServerEvent]:
        text = line.decode("utf-8", "replace")
        if self._is_first:
            text, self._is_first = text.removeprefix("\ufeff"), False
        if not text:
            return self._ended()
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return []

    def _ended(self) -> list[ServerEvent]:
        name, data = self._name, self._data
        self._name, self._data = "", []
        return [ServerEvent(name or "message", "\n".join(data))] if data else []


def _split_lines(data: bytes) -> tuple[list[bytes], bytes]:
    """Whole lines, and what may still grow. A CR at the very end waits: an LF may follow."""
    lines, start = [], 0
    for end in _END.finditer(data):
        if end.group() == b"\r" and end.end() == len(data):
            break
        lines.append(data[start : end.start()])
        start = end.end()
    return lines, data[start:]
