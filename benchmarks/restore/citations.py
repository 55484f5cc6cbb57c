"""Every citation of every document must lead to the words it is given for: looked up in the raw bytes, by other code.

A citation is resolved when the record at its byte range is there and the quotation stands in it: in the text of its JSON
values where it is JSON, in the bytes themselves where it is not. Blanks and quotation marks, with which a list of words
becomes a command, are forgiven. Two sorts are counted with the others and told apart in the note: those without a quotation,
of which only the place can be looked up, and those of messages that a reader put together (typed key by key, drawn on a
screen) whose words stand nowhere as such: they must stand in what the reader makes of that very record.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from benchmarks.figures import Figure
from everturn.model.archive import MessageRow
from everturn.restore.document import Document, Evidence
from everturn.restore.mechanical import build_document
from everturn.sessions.messages import Records
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store

BROKEN = "broken"
_DEEPEST = 12
_QUOTES = str.maketrans("", "", "'\"")


def figure(store: Store) -> Figure:
    """The share of citations that resolve, over every session of the corpus."""
    ways: Counter[str] = Counter()
    first = ""
    for session, _ in store.sessions(SessionFilter(), limit=100_000)[0]:
        data = store.read_raw(session.version, 0, store.version(session.version).size)
        rows = {row.seq: row for row in store.messages(session.id)}
        records = Records(store, all_sources(), session)
        for one in _evidence(build_document(store, all_sources(), session)):
            way = _way(data, one, rows[one.message], records)
            ways[way] += 1
            first = first or (f"; first broken: {session.native_id} message {one.message + 1}" if way == BROKEN else "")
    note = ", ".join(f"{n:,} {way}" for way, n in ways.most_common()) + first
    return Figure("citations that resolve", 1 - ways[BROKEN] / max(1, ways.total()), "", 1, True, note)


def _way(data: bytes, one: Evidence, row: MessageRow, records: Records) -> str:
    """How a citation was resolved."""
    if resolves(data, one):
        return "by words in the raw bytes" if one.quote else "by place alone"
    is_there = bool(data[one.start : one.start + one.size]) and row.fidelity != "exact"
    read = _bare("".join(block.text for block in records.message(row).blocks)) if is_there else ""
    return "only through the reader" if _bare(one.quote) in read else BROKEN


def resolves(data: bytes, one: Evidence) -> bool:
    """Whether the words stand where they are said to stand."""
    record = data[one.start : one.start + one.size]
    if not record:
        return False
    wanted = _bare(one.quote)
    return not wanted or any(wanted in _bare(text) for text in _texts(record))


def _bare(text: str) -> str:
    return "".join(text.split()).translate(_QUOTES)


def _texts(record: bytes) -> Iterator[str]:
    text = record.decode("utf-8", "replace")
    yield text
    for whole in ("{}", "[{}]", '"{}"'):  # an object, some of a list, the inside of a string
        try:
            value = json.loads(whole.replace("{}", text.strip().rstrip(",")))
        except ValueError:
            continue
        strings = list(_strings(value, _DEEPEST))
        yield from strings
        yield "".join(strings)


def _strings(value: Any, deep: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if value[:1] in "{[" and deep:  # arguments are often JSON within JSON
            try:
                yield from _strings(json.loads(value), deep - 1)
            except ValueError:
                return
    elif isinstance(value, dict | list) and deep:
        for key in value if isinstance(value, dict) else ():
            yield str(key)
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one, deep - 1)


def _evidence(document: Document) -> Iterator[Evidence]:
    for section in (*document.sections, *document.facts):
        for statement in section.statements:
            yield from statement.evidence
