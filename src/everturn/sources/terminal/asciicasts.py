"""Asciicasts: what asciinema writes. Version 1 is one JSON object; 2 and 3 are a header and a line for each event.

Times are delays since the event before in versions 1 and 3, and counted from the start in version 2.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import msgspec
from msgspec import DecodeError, Raw, Struct

from everturn.sources.terminal.chunks import OutputChunk, TerminalRecording
from everturn.sources.terminal.sizes import DEFAULT, sensible_size

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
