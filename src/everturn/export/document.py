"""One session as one JSON document: schema `everturn/session@1`.

    {"schema": …, "redacted": …, "session": {…}, "source": {…}, "lineage": {…}, "turns": [
        {"number": 1, …, "messages": [those outside any step], "calls": [results without a call],
         "steps": [{"number": 1, …, "calls": [{…, "artifacts": […]}], "messages": [
             {"number": 1, "role": …, "blocks": [{"kind": …, "data": as found}], "evidence": {…}}]}]}]}

Everything that has a number counts from 1, over the whole session; each message stands in it exactly once. `evidence`
is the byte range of the record within `source` and the SHA-256 of those bytes as captured. Written piece by piece.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from everturn.export.facts import (
    call_facts,
    lineage_facts,
    message_facts,
    session_facts,
    source_facts,
    step_facts,
    turn_facts,
)
from everturn.model.archive import Artifact, MessageRow, Session
from everturn.recall.lineage import lineage
from everturn.recall.reading import Records, Sources, TurnView, read_turns
from everturn.store import Store

#: Takes secrets out of a line of JSON and leaves it JSON. A whole line, because `{"password": …}` needs its name.
Clean = Callable[[bytes], bytes]

#: What JSON may hold raw but a terminal acts on; escaped it means the same.
_ACTIVE_CHARACTERS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def as_json(store: Store, sources: Sources, session: Session, clean: Clean | None = None) -> Iterator[str]:
    """The document in pieces; `clean` is applied to every line of it."""
    encode = _Encoder(clean)
    text = store.session(session.id)[1]
    yield '{"schema":"everturn/session@1","redacted":' + ("true" if clean else "false")
    yield ',"session":' + encode(session_facts(session, text))
    yield ',"source":' + encode(source_facts(store, session))
    yield ',"lineage":' + encode(lineage_facts(lineage(store, session)))
    yield ',"turns":['
    records = Records(store, sources, session)
    touched = _group_by_call(store.artifacts(session.id))
    for number, view in enumerate(read_turns(store, session)):
        yield "\n" if number == 0 else ",\n"
        yield from _turn(view, records, touched, encode)
    yield "]}\n"


def _turn(view: TurnView, records: Records, touched: _ArtifactsByCall, encode: _Encoder) -> Iterator[str]:
    own = {step.idx for step in view.steps}
    rows: dict[int, list[MessageRow]] = {}
    for row in view.rows:
        rows.setdefault(row.step if row.step in own else -1, []).append(row)
    calls: dict[int, list[Any]] = {}
    for call in view.calls:
        facts = call_facts(call, touched.get((call.seq, call.idx), ()))
        calls.setdefault(call.step if call.step in own else -1, []).append(facts)
    yield encode({**turn_facts(view.turn), "calls": calls.get(-1, [])})[:-1]
    yield from _messages(rows.get(-1, []), records, encode)
    yield ',"steps":['
    for number, step in enumerate(view.steps):
        yield ("," if number else "") + encode({**step_facts(step), "calls": calls.get(step.idx, [])})[:-1]
        yield from _messages(rows.get(step.idx, []), records, encode)
        yield "}"
    yield "]}"


def _messages(rows: list[MessageRow], records: Records, encode: _Encoder) -> Iterator[str]:
    yield ',"messages":['
    for number, row in enumerate(rows):
        yield ("," if number else "") + _message(row, records, encode)
    yield "]"


def _message(row: MessageRow, records: Records, encode: _Encoder) -> str:
    record = records.record(row)
    digest = sha256(record).hexdigest() if record else None
    message = records.view(row, record)
    del record  # as long as a line can be
    try:
        return encode(message_facts(row, message, digest))
    except RecursionError:  # nested deeper than can be walked: its text is given instead
        flat = tuple(replace(block, data=None) for block in message.blocks)
        return encode(message_facts(row, replace(message, blocks=flat, fidelity="rendered"), digest))


_ArtifactsByCall = dict[tuple[int, int], list[Artifact]]


def _group_by_call(artifacts: list[Artifact]) -> _ArtifactsByCall:
    found: _ArtifactsByCall = {}
    for one in artifacts:
        found.setdefault((one.seq, one.idx), []).append(one)
    return found


class _Encoder:
    """JSON in one line that is safe to print, without what `clean` takes out of it."""

    def __init__(self, clean: Clean | None) -> None:
        self._clean = clean

    def __call__(self, facts: Any) -> str:
        try:
            line = msgspec.json.encode(facts)
        except UnicodeEncodeError:  # half of a surrogate pair, as transcripts do have them
            line = json.dumps(msgspec.to_builtins(facts), separators=(",", ":")).encode()
        if self._clean:
            line = self._clean(line)
        return _ACTIVE_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", line.decode())
