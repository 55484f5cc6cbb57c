"""Takes the titles and summary lines out of a transcript, as the formats beside the checkout write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_KEYS = ("summary", "aiTitle", "customTitle", "content")
_RECORDS = ("summary", "ai-title", "custom-title", "agent-name")
_MARKED = re.compile(rb'"(?:summary|ai-title|custom-title|agent-name|away_summary)"')
_HEADING = re.compile(r"(?m)^# (?P<title>\D[^\n(]*?) \((?P<time>\d{4}-\d\d-\d\d[^\n)]*)\)$")
_DECODER = json.JSONDecoder()
_UNTITLED = re.compile(r"New session|Child session|Untitled")


def without_titles(path: Path) -> tuple[bytes, list[str]]:
    """The bytes of a transcript without its titles, and these."""
    data = path.read_bytes()
    if path.suffix == ".jsonl":
        return _lines(data)
    if path.suffix == ".md":
        return _headings(data)
    if path.suffix == ".json":
        return _document(data)
    return data, []


def _lines(data: bytes) -> tuple[bytes, list[str]]:
    kept: list[bytes] = []
    found: list[str] = []
    for line in data.splitlines(keepends=True):
        for piece, record in _records(line) if _MARKED.search(line) else [(line, {})]:
            if record.get("type") not in _RECORDS and record.get("subtype") != "away_summary":
                kept.append(piece)
            elif record.get("type") != "summary" or f'"uuid":"{record.get("leafUuid")}"'.encode() in data:
                found += [_first_sentence(record[key]) for key in _KEYS if isinstance(record.get(key), str)]
    return b"".join(kept), list(dict.fromkeys(found))


def _records(line: bytes) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """The records of a line with their bytes: clients write two on one line at times."""
    text, at = line.decode("utf-8", "surrogateescape"), 0
    while text[at:].strip():
        try:
            record, end = _DECODER.raw_decode(text, at)
        except ValueError:
            break
        yield text[at:end].encode("utf-8", "surrogateescape"), record if isinstance(record, dict) else {}
        at = end
    yield text[at:].encode("utf-8", "surrogateescape"), {}


def _headings(data: bytes) -> tuple[bytes, list[str]]:
    """Of a document: the first one is its title."""
    text = data.decode("utf-8", "replace")
    match = _HEADING.search(text[:500])
    if match is None:
        return data, []
    return (text[: match.start()] + f"# {match['time']}" + text[match.end() :]).encode(), [match["title"].strip()]


def _document(data: bytes) -> tuple[bytes, list[str]]:
    record = _record(data)
    about = record.get("info") if record is not None else None
    if record is None or not isinstance(about, dict) or not isinstance(about.get("title"), str):
        return data, []
    title = about["title"]
    left = {key: value for key, value in about.items() if key not in ("title", "slug")}
    found = [] if _UNTITLED.match(title) else [title]
    return json.dumps({**record, "info": {**left, "title": ""}}, ensure_ascii=False).encode("utf-8", "replace"), found


def _record(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _first_sentence(text: str) -> str:
    """What came first is what it is about; the rest tells how it went on."""
    return re.split(r"(?<=[.!?;])\s|\n", text.strip(), maxsplit=1)[0]
