"""What programs are answered, the same from every surface: `--json` of a command and the API of the web page.

Plain values for JSON; what they hold is described in `web.schemas` and checked against it. Everything that has a number
counts from 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from everturn.derive.times import iso
from everturn.export.facts import call_facts, session_facts, time_text
from everturn.model.archive import MessageRow
from everturn.recall.listing import SessionListing
from everturn.recall.snippets import NeighbourTurn, SearchHit
from everturn.recall.transcript import Passage, input_text


def session_item(item: SessionListing) -> dict[str, Any]:
    """One line of a list of sessions."""
    return {"short": item.short, **session_facts(item.session, item.text)}


def passage_item(passage: Passage, tools: bool, started: Iterable[str] = ()) -> dict[str, Any]:
    """One passage of a turn; `tools` also what went into tools and came out, `started` the sessions its call started."""
    facts: dict[str, Any] = {"kind": passage.kind}
    if passage.row is not None:
        facts |= {"message": passage.row.seq + 1, "at": iso(passage.row.at) or None, "origin": passage.row.origin}
    if passage.kind not in ("call", "result"):
        facts["text"] = passage.text
    elif tools:
        facts["text"] = input_text(passage.start) if passage.start else passage.text
    if passage.call is not None:
        facts["call"] = {**call_facts(passage.call), "parallel": passage.batch > 1}
        facts["started"] = list(started)
    if passage.start is not None:
        facts |= {"tool": passage.start.name, "path": passage.start.path, "command": passage.start.command}
    if passage.kind == "call" and passage.result is not None:
        facts["result"] = passage.result.text
    return facts


def hit_item(found: SearchHit) -> dict[str, Any]:
    """One match of a search."""
    row, session = found.row, found.session
    return {
        "session": session.native_id,
        "agent": session.agent,
        "kind": session.kind,
        "state": session.state,
        "title": found.text.title or None,
        "workspace": found.text.workspace or None,
        "turn": None if row is None else row.turn + 1,
        "message": None if row is None else row.seq + 1,
        "role": None if row is None else row.role,
        "origin": None if row is None else row.origin,
        "field": found.field,
        "at": None if row is None else time_text(row.at),
        "score": round(found.score, 4),
        "snippet": found.snippet,
        "spans": [list(span) for span in found.spans],
        "before": [_neighbour_item(one) for one in found.before],
        "after": [_neighbour_item(one) for one in found.after],
    }


def record_item(row: MessageRow, record: bytes) -> dict[str, Any]:
    """A message as it was captured."""
    return {"message": row.seq + 1, "start": row.start, "size": row.size, "record": record.decode("utf-8", "replace")}


def _neighbour_item(one: NeighbourTurn) -> dict[str, Any]:
    return {"turn": one.turn + 1, "role": one.role, "text": one.text}
