"""One session as a JSON document (schema `everturn/session@1`), and every item that commands and the web API answer with.

    {"schema": …, "redacted": …, "session": {…}, "source": {…}, "lineage": {…}, "turns": [
        {"number": 1, …, "messages": [those outside any step], "calls": [results without a call],
         "steps": [{"number": 1, …, "calls": [{…, "artifacts": […]}], "messages": [
             {"number": 1, "role": …, "blocks": [{"kind": …, "data": as found}], "evidence": {…}}]}]}]}

All numbers count from 1, over the whole session, and each message occurs exactly once. `evidence` is the byte range of the
record within `source` and the SHA-256 of those bytes as captured. Unknown values are null, values that do not apply are
empty. The document is written in parts.

`--json` of a command and the web API give the same items. `web.schemas` describes them, and tests compare the two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from everturn.model.archive import Artifact, Call, MessageRow, Session, SessionText, Step, Turn
from everturn.model.conversation import Block, Message
from everturn.retrieval.hits import NeighbourTurn, SearchHit, SimilarHit
from everturn.sessions.lineage import Lineage, Relative, lineage
from everturn.sessions.lookup import SessionListing
from everturn.sessions.messages import Passage, Records, Sources, TurnView, has_words, input_text, read_turns
from everturn.store.contract import Store
from everturn.text.times import iso, turn_ms

_COUNTS = ("turns", "steps", "messages", "inherited", "prompts", "calls", "errors")


def session_facts(session: Session, text: SessionText) -> dict[str, Any]:
    return {
        "id": session.native_id,
        **_values(session, "agent", "kind"),
        "parent": session.parent or None,
        **_values(session, "state", "mode"),
        "words": has_words(session),
        **_texts(text, "title", "summary", "first_prompt", "workspace", "branch", "team", "agent_name", "slug"),
        **_values(session, "machine", "owner"),
        **_texts(session, "client", "model"),
        "started": time_text(session.started),
        "ended": time_text(session.ended),
        "counts": {name: getattr(session, f"n_{name}") for name in _COUNTS},
        "tokens": _tokens(session),
    }


def source_facts(store: Store, session: Session) -> dict[str, Any]:
    version = store.version(session.version)
    file, _ = store.file_by_id(version.source)
    return {
        **_values(file, "path", "format", "machine", "state"),
        "version": version.number,
        "versions": [one.number for one in store.versions(version.source)],
        "bytes": version.size,
        **_values(version, "erased", "parser"),
    }


def lineage_facts(relatives: Lineage) -> dict[str, Any]:
    return {name: [_relative_facts(one) for one in getattr(relatives, name)] for name in relatives.__struct_fields__}


def turn_facts(turn: Turn) -> dict[str, Any]:
    return {
        "number": turn.idx + 1,
        "starter": turn.starter,
        "started": time_text(turn.started),
        "ended": time_text(turn.ended),
        "duration_ms": turn_ms(turn),
        "first_message": turn.first_seq + 1,
        "last_message": turn.last_seq + 1,
        **_values(turn, "n_steps", "n_calls", "n_errors"),
        **{name: bool(getattr(turn, name)) for name in ("compacted", "interrupted", "inherited", "taken_back")},
    }


def step_facts(step: Step) -> dict[str, Any]:
    return {
        "number": step.idx + 1,
        **_texts(step, "provider_id", "model"),
        "started": time_text(step.started),
        "ended": time_text(step.ended),
        "parallel": step.n_calls > 1,
        "tokens": _tokens(step),
        "inherited": bool(step.inherited),
    }


def call_facts(call: Call, touched: Iterable[Artifact] = ()) -> dict[str, Any]:
    """Return the facts of a call. Parallel calls share their position."""
    return {
        "id": call.call_id or None,
        "name": call.name or None,
        **_values(call, "kind", "status"),
        "error_class": call.error_class or None,
        "exit_status": call.exit_status,
        "turn": call.turn + 1,
        "step": call.step + 1 if call.step >= 0 else None,
        "position": call.position + 1,
        "batch": call.batch + 1,
        "message": call.seq + 1,
        "block": call.idx + 1,
        "result_message": None if call.result_seq is None else call.result_seq + 1,
        "started": time_text(call.started),
        "ended": time_text(call.ended),
        **_values(call, "duration_ms", "input_size", "output_size"),
        "inherited": bool(call.inherited),
        "artifacts": [{"action": one.action, "path": one.path} for one in touched],
    }


def message_facts(row: MessageRow, message: Message, digest: str | None) -> dict[str, Any]:
    """Return a message with its blocks as found and its byte range; `digest` is the SHA-256 of the bytes."""
    return {
        "number": row.seq + 1,
        "turn": row.turn + 1,
        "step": row.step + 1 if row.step >= 0 else None,
        **_values(message, "role", "origin", "kind"),
        "at": time_text(message.at),
        "precision": message.precision,
        **_texts(message, "native_id", "provider_id", "model"),
        "usage": message.usage,
        "inherited": bool(row.inherited),
        "taken_back": row.taken_back + 1 if row.taken_back else None,
        "fidelity": message.fidelity,
        "blocks": [_block_facts(block) for block in message.blocks],
        "evidence": {"start": row.start, "size": row.size, "sha256": digest},
    }


def _values(row: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


def _texts(row: Any, *names: str) -> dict[str, str | None]:
    """Return fields of a row; an empty one, which is not known, is null."""
    return {name: getattr(row, name) or None for name in names}


def time_text(ms: int | None) -> str | None:
    """Return a time as text; None if there is none."""
    return None if ms is None else iso(ms)


def _tokens(row: Session | Step) -> dict[str, int]:
    return {
        "input": row.tokens_in,
        "output": row.tokens_out,
        "cache_read": row.tokens_cache_read,
        "cache_write": row.tokens_cache_write,
    }


def _block_facts(block: Block) -> dict[str, Any]:
    facts: dict[str, Any] = {"kind": block.kind, "field": block.field or None}
    if block.call is not None:
        call = block.call
        facts["call"] = {"id": call.call_id, **_values(call, "name", "kind", "path", "command")}
    if block.result is not None:
        facts["result"] = block.result
    if block.data is None:
        return {**facts, "text": block.text}
    return {**facts, "data": block.data}


def _relative_facts(one: Relative) -> dict[str, Any]:
    return {
        "relation": one.relation,
        "id": one.native_id,
        "archived": one.session is not None,
        "kind": one.session.kind if one.session else None,
        "shared_messages": one.shared or None,
        "call": call_facts(one.call) if one.call else None,
    }


_ArtifactsByCall = dict[tuple[int, int], list[Artifact]]  # by (seq, idx) of the call

#: Removes secrets from a line of JSON and leaves it JSON. A whole line, because `{"password": …}` needs its name.
Clean = Callable[[bytes], bytes]

#: Characters that JSON may hold raw but a terminal acts on. Escaped, they mean the same.
_ACTIVE_CHARACTERS = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def as_json(store: Store, sources: Sources, session: Session, clean: Clean | None = None) -> Iterator[str]:
    """Yield the parts of the document. `clean` is applied to every line of it."""
    encode = _Encoder(clean)
    text = store.session(session.id)[1]
    yield '{"schema":"everturn/session@1","redacted":' + ("true" if clean else "false")
    yield ',"session":' + encode(session_facts(session, text))
    yield ',"source":' + encode(source_facts(store, session))
    yield ',"lineage":' + encode(lineage_facts(lineage(store, session)))
    yield ',"turns":['
    records = Records(store, sources, session)
    touched: _ArtifactsByCall = {}
    for one in store.artifacts(session.id):
        touched.setdefault((one.seq, one.idx), []).append(one)
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
    del record  # it may be very long
    try:
        return encode(message_facts(row, message, digest))
    except RecursionError:  # nested too deep to encode: use its text instead
        flat = tuple(replace(block, data=None) for block in message.blocks)
        return encode(message_facts(row, replace(message, blocks=flat, fidelity="rendered"), digest))


class _Encoder:
    """Encodes JSON on one line that is safe to print, without what `clean` removes."""

    def __init__(self, clean: Clean | None) -> None:
        self._clean = clean

    def __call__(self, facts: Any) -> str:
        try:
            line = msgspec.json.encode(facts)
        except UnicodeEncodeError:  # half a surrogate pair, which occurs in transcripts
            line = json.dumps(msgspec.to_builtins(facts), separators=(",", ":")).encode()
        if self._clean:
            line = self._clean(line)
        return _ACTIVE_CHARACTERS.sub(lambda match: f"\\u{ord(match[0]):04x}", line.decode())


def session_item(item: SessionListing) -> dict[str, Any]:
    return {"short": item.short, **session_facts(item.session, item.text)}


def passage_item(passage: Passage, tools: bool, started: Iterable[str] = ()) -> dict[str, Any]:
    """Return one passage of a turn: with `tools` also tool input and output; `started`: sessions its call started."""
    facts: dict[str, Any] = {"kind": passage.kind}
    if passage.row is not None:
        facts |= {"message": passage.row.seq + 1, "at": iso(passage.row.at) or None, "origin": passage.row.origin}
        facts |= {"taken_back": passage.row.taken_back + 1} if passage.row.taken_back else {}
    if passage.kind not in ("call", "result"):
        facts["text"] = passage.text
    elif tools:
        facts["text"] = input_text(passage.start) if passage.start else passage.text
    if passage.call is not None:
        facts["call"] = {**call_facts(passage.call), "parallel": passage.batch > 1}
        facts["started"] = list(started)
        if passage.commits:
            facts["commits"] = [
                {"commit": one.hash or None, "subject": one.subject, "url": one.url or None} for one in passage.commits
            ]
    if passage.start is not None:
        facts |= {"tool": passage.start.name, "path": passage.start.path, "command": passage.start.command}
    if passage.kind == "call" and passage.result is not None:
        facts["result"] = passage.result.text
    return facts


def hit_item(hit: SearchHit) -> dict[str, Any]:
    row, session = hit.row, hit.session
    return {
        "session": session.native_id,
        **_values(session, "agent", "kind", "state"),
        **_texts(hit.text, "title", "workspace"),
        "turn": None if row is None else row.turn + 1,
        "message": None if row is None else row.seq + 1,
        "role": None if row is None else row.role,
        "origin": None if row is None else row.origin,
        "taken_back": row is not None and bool(row.taken_back),
        "field": hit.field,
        "at": time_text(hit.at),
        "score": round(hit.score, 4),
        "snippet": hit.snippet,
        "spans": [list(span) for span in hit.spans],
        "before": [_neighbour_item(one) for one in hit.before],
        "after": [_neighbour_item(one) for one in hit.after],
        "similar": [_similar_item(one) for one in hit.similar],
    }


def record_item(row: MessageRow, record: bytes) -> dict[str, Any]:
    return {"message": row.seq + 1, "start": row.start, "size": row.size, "record": record.decode("utf-8", "replace")}


def _similar_item(one: SimilarHit) -> dict[str, Any]:
    row = one.row
    return {
        "session": one.session.native_id,
        "turn": None if row is None else row.turn + 1,
        "message": None if row is None else row.seq + 1,
        "at": time_text(one.at),
    }


def _neighbour_item(one: NeighbourTurn) -> dict[str, Any]:
    return {"turn": one.turn + 1, "role": one.role, "text": one.text}
