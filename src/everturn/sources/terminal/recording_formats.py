"""Asciicasts: what asciinema writes. Version 1 is one JSON object; 2 and 3 are a header and a line for each event.

Times are delays since the event before in versions 1 and 3, and counted from the start in version 2.

Typescripts: what `script` writes, between a line that says when it began and one that says when it ended.

A file to which was appended holds several of them. The timing file beside it has one line for each piece of output:
`delay bytes`, or in the newer form `type delay …` with types for output, input, signals and headers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec
from msgspec import DecodeError, Raw, Struct

from everturn.sources.terminal.sizes import DEFAULT, find_changes, guess_size, sensible_size, with_changes
from everturn.sources.terminal.transcript import OutputChunk, TerminalRecording, cut_chunks

_Event = tuple[float, str, str]


class _Term(Struct):
    cols: int = 0
    rows: int = 0


class _Header(Struct):
    version: int
    width: int = 0
    height: int = 0
    term: _Term | None = None
    timestamp: float | None = None
    command: str | None = None


class _VersionOne(_Header):
    """The whole of version 1."""

    stdout: list[Raw] = []


_header = msgspec.json.Decoder(_Header, strict=False)
_version_1_decoder = msgspec.json.Decoder(_VersionOne, strict=False)
_event: msgspec.json.Decoder[_Event] = msgspec.json.Decoder(_Event, strict=False)
_delay_decoder = msgspec.json.Decoder(tuple[float, str], strict=False)


def recognise_asciicast(head: bytes) -> bool:
    """Whether a file starts like an asciicast."""
    start = head.lstrip()
    if not start.startswith(b"{") or b'"version"' not in start[:2000]:
        return False
    header = _decode_header(start.split(b"\n", 1)[0])
    if header is not None and header.version in (2, 3):
        return _cast_size(header) is not None
    compact = start.translate(None, b" \r\n\t")
    return b'"version":1,' in compact[:2000] and b'"stdout":[[' in compact


def read_asciicast(data: bytes) -> TerminalRecording:
    """An asciicast; an unreadable event is left out."""
    end = data.find(b"\n", len(data) - len(data.lstrip()))
    header = _decode_header(data[: end if end >= 0 else len(data)])
    if header is None or header.version == 1:
        return _version_1(data)
    columns, rows = _cast_size(header) or DEFAULT
    return TerminalRecording(
        "asciicast",
        columns,
        rows,
        lambda: _events(data, end + 1, relative=header.version == 3),
        started=_cast_milliseconds(header.timestamp),
        command=header.command or "",
        exit_status=_exit_status(data) if header.version == 3 else None,
    )


def _version_1(data: bytes) -> TerminalRecording:
    try:
        whole = _version_1_decoder.decode(data)
    except (DecodeError, UnicodeDecodeError):
        whole = _VersionOne(1)
    columns, rows = _cast_size(whole) or DEFAULT
    return TerminalRecording(
        "asciicast",
        columns,
        rows,
        lambda: _delays(data, whole.stdout),
        command=whole.command or "",
        started=_cast_milliseconds(whole.timestamp),
    )


def _delays(data: bytes, stdout: list[Raw]) -> Iterator[OutputChunk]:
    place, elapsed = 0, 0.0
    for raw in stdout:
        written = bytes(raw)
        start = max(place, data.find(written, place))
        place = start + len(written)
        try:
            delay, text = _delay_decoder.decode(written)
        except (DecodeError, UnicodeDecodeError):
            continue
        elapsed += max(0.0, delay)
        yield OutputChunk(text.encode("utf-8", "replace"), start, place, elapsed)


def _events(data: bytes, place: int, relative: bool) -> Iterator[OutputChunk]:
    elapsed = 0.0
    while place < len(data):
        end = data.find(b"\n", place)
        end = len(data) if end < 0 else end
        event = _read(data[place:end])
        if event is not None:
            at, kind, text = event
            elapsed = elapsed + max(0.0, at) if relative else max(elapsed, at)
            if kind == "o":
                yield OutputChunk(text.encode("utf-8", "replace"), place, end, elapsed)
            elif kind == "r":
                yield OutputChunk(b"", place, end, elapsed, sensible_size(*text.partition("x")[::2]))
        place = end + 1


def _read(line: bytes) -> _Event | None:
    """An event, or None for comments and damage."""
    if not line.startswith(b"["):
        return None
    try:
        return _event.decode(line)
    except (DecodeError, UnicodeDecodeError):
        pass
    try:  # half of a surrogate pair, which msgspec refuses
        at, kind, text = json.loads(line)
        return float(at), str(kind), str(text)
    except (ValueError, TypeError, RecursionError):
        return None


def _exit_status(data: bytes) -> int | None:
    """Of the last event."""
    event = _read(data[data.rstrip().rfind(b"\n") + 1 :].strip())
    return int(event[2]) if event and event[1] == "x" and event[2].isdigit() else None


def _decode_header(line: bytes) -> _Header | None:
    try:
        return _header.decode(line)
    except (DecodeError, UnicodeDecodeError):
        return None


def _cast_size(header: _Header) -> tuple[int, int] | None:
    if header.term is not None:
        return sensible_size(header.term.cols, header.term.rows)
    return sensible_size(header.width, header.height)


def _cast_milliseconds(seconds: float | None) -> int | None:
    return round(seconds * 1000) if seconds is not None and 0 < seconds < 1e11 else None


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
        lambda: _script_chunks(data, parts, entries, (columns, rows)),
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


def _script_chunks(
    data: bytes, parts: list[_ScriptPart], entries: list[_TimingEntry], size: tuple[int, int]
) -> Iterator[OutputChunk]:
    chunks = _timed_chunks(data, parts, entries) if entries else _untimed_chunks(data, parts)
    tells = len(parts) > 1 or any(entry.key == "SIGWINCH" for entry in entries)
    return chunks if tells else with_changes(chunks, find_changes(data, size))


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
