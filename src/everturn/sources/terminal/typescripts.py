"""Typescripts: what `script` writes, between a line that says when it began and one that says when it ended.

A file to which was appended holds several of them. The timing file beside it has one line for each piece of output:
`delay bytes`, or in the newer form `type delay …` with types for output, input, signals and headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from everturn.sources.terminal.chunks import OutputChunk, TerminalRecording, cut_chunks
from everturn.sources.terminal.sizes import guess_size, sensible_size

_HEAD = re.compile(rb"Script started on ([^\[\r\n]{8,60}?)(?: \[([^\r\n]*)\])?\r?\n")
_FOOT = re.compile(rb"\r?\n?Script done on ([^\[\r\n]{8,60}?)(?: \[([^\r\n]*)\])?\r?(?:\n|\Z)")
_FIELD = re.compile(r'([A-Z_]+)="((?:[^"\\]|\\.)*)"')
_RESET = b"\x1bc"


class _ScriptPart(NamedTuple):
    """One of the sessions in a file."""

    start: int  # of the output
    end: int
    began: str
    ended: str
    fields: dict[str, str]


def recognise_typescript(head: bytes) -> bool:
    """Whether a file starts like a typescript."""
    return _HEAD.match(head) is not None


def read_typescript(data: bytes, timing: bytes | None) -> TerminalRecording:
    """A typescript. Times come from the timing file; without one there are none but start and end."""
    parts = list(_parts(data))
    first, last = parts[0], parts[-1]
    entries = list(_entries(timing)) if timing else []
    told = {entry.key: entry.value for entry in entries if entry.kind == "H"}
    columns, rows = _script_size({**told, **first.fields}) or guess_size(data[first.start : first.end])
    started = _moment(first.began) or _moment(told.get("START_TIME", ""))
    status = last.fields.get("COMMAND_EXIT_CODE", told.get("EXIT_CODE", ""))
    return TerminalRecording(
        "typescript",
        columns,
        rows,
        lambda: _timed_chunks(data, parts, entries) if entries else _untimed_chunks(data, parts),
        started=_moment_milliseconds(started),
        ended=_moment_milliseconds(_moment(last.ended)),
        command=first.fields.get("COMMAND", told.get("COMMAND", "")),
        exit_status=int(status) if status.isascii() and status.isdigit() else None,
        zone=_zone(started),
    )


def _parts(data: bytes) -> Iterator[_ScriptPart]:
    head = _HEAD.match(data)
    place, began, fields = 0, "", {}
    if head:
        place, began, fields = head.end(), _text(head[1]), _fields(head[2])
    for foot in _feet(data, place):
        following = _HEAD.match(data, foot.end())
        if following is None and foot.end() < len(data):
            continue  # somebody printed a typescript
        yield _ScriptPart(place, foot.start(), began, _text(foot[1]), {**fields, **_fields(foot[2])})
        if following is None:
            return
        place, began, fields = following.end(), _text(following[1]), _fields(following[2])
    yield _ScriptPart(place, len(data), began, "", fields)


def _feet(data: bytes, place: int) -> Iterator[re.Match[bytes]]:
    while (place := data.find(b"Script done on ", place)) >= 0:
        start = place - (data[place - 1 : place] == b"\n")
        foot = _FOOT.match(data, start - (start < place and data[start - 1 : start] == b"\r"))
        if foot:
            yield foot
        place += 1


def _untimed_chunks(data: bytes, parts: list[_ScriptPart]) -> Iterator[OutputChunk]:
    for number, part in enumerate(parts):
        if number:
            yield OutputChunk(_RESET, part.start, part.start, size=_script_size(part.fields))
        yield from cut_chunks(data, part.start, part.end)


# timing ---------------------------------------------------------------------------------------------------------------
class _TimingEntry(NamedTuple):
    kind: str  # O output, I input, S signal, H header
    delay: float
    length: int = 0
    key: str = ""
    value: str = ""


def _entries(timing: bytes) -> Iterator[_TimingEntry]:
    for line in timing.decode("utf-8", "replace").splitlines():
        words = line.split(maxsplit=3)
        kind = "O"
        if words and words[0] in ("O", "I", "S", "H"):
            kind = words.pop(0)
        try:
            delay = max(0.0, float(words[0]))
            if kind in "OI":
                yield _TimingEntry(kind, delay, max(0, int(words[1])))
            else:
                yield _TimingEntry(kind, delay, key=words[1], value=" ".join(words[2:]))
        except (IndexError, ValueError):
            continue


def _timed_chunks(data: bytes, parts: list[_ScriptPart], entries: list[_TimingEntry]) -> Iterator[OutputChunk]:
    """Pieces as long as the entries say. What was typed is skipped where the file holds it: passwords are among it."""
    place, end = parts[0].start, parts[-1].end
    holds_input = place + sum(entry.length for entry in entries if entry.kind in "OI") <= end
    elapsed = 0.0
    for entry in entries:
        elapsed += entry.delay
        if entry.kind == "O" and entry.length and place < end:
            stop = min(place + entry.length, end)
            yield OutputChunk(data[place:stop], place, stop, elapsed)
            place = stop
        elif entry.kind == "I" and holds_input:
            place = min(place + entry.length, end)
        elif entry.kind == "S" and entry.key == "SIGWINCH":
            size = dict(word.split("=", 1) for word in entry.value.split() if "=" in word)
            yield OutputChunk(
                b"",
                place,
                place,
                elapsed,
                _script_size({"COLUMNS": size.get("COLS", ""), "LINES": size.get("ROWS", "")}),
            )
    yield from (piece._replace(elapsed=elapsed) for piece in cut_chunks(data, place, end))


# words of the header --------------------------------------------------------------------------------------------------
def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").strip()


def _fields(raw: bytes | None) -> dict[str, str]:
    return dict(_FIELD.findall(_text(raw))) if raw else {}


def _script_size(fields: dict[str, str]) -> tuple[int, int] | None:
    return sensible_size(fields.get("COLUMNS", ""), fields.get("LINES", ""))


def _moment(written: str) -> datetime | None:
    """`2025-12-22 14:19:12-06:00`; None for a time whose zone is not said, or not by its offset."""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return None
    return moment if moment.tzinfo else None


def _moment_milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


def _zone(moment: datetime | None) -> int | None:
    offset = None if moment is None else moment.utcoffset()
    return None if offset is None else round(offset.total_seconds() / 60)
