"""Checks the records of a session from a database or a folder: rows that cannot be read, order, parents, empty content.

A row is the JSON of a message or of a part, see `message`. One that breaks off is kept as far as it goes; a message whose own
row cannot be read keeps its parts, and its role is what they show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everturn.sources.contract import CheckedRecord, FileCheck, Flaw, SourceCandidate
from everturn.sources.opencode.message import info_of
from everturn.sources.toolkit.json_document import decode_item
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.record_check import (
    BROKEN_OFF,
    close_json,
    judge_records,
    make_flaw,
    sort_records,
    with_value,
    without_copies,
)
from everturn.sources.toolkit.values import word

_OF_MODEL = frozenset(("step-start", "step-finish", "tool", "reasoning"))


def check(found: SourceCandidate, records: Sequence[CheckedRecord]) -> FileCheck:
    flaws: list[Flaw] = []
    kept = _keep_own_session(found, judge_records(records, _mend_torn, flaws), flaws)
    kept = without_copies(kept, _message_id, flaws, lambda record: record.value)
    mended = [_mend_rows(record, flaws) for record in kept]
    kept = sort_records(
        mended, _message_id, flaws, "its id is earlier than that of the one before"
    )  # as the client does
    names = {name for record in kept if (name := _message_id(record))}
    for record in kept:
        parent = word(info_of(record.value).get("parentID")) if _message_id(record) else ""
        if parent and parent not in names:
            note = f"it answers a message {parent} that is nowhere: what that one held is lost"
            flaws.append(make_flaw("dangling_parent", record, note, lost=True))
        if any(part.get("type") == "text" and part.get("text") == "" for part in _parts(record.value)):
            flaws.append(make_flaw("empty_block", record))
    return FileCheck(kept, flaws)


def _message_id(record: CheckedRecord) -> str | None:
    return word(info_of(record.value).get("id")) or None if "parts" in record.value else None


def _parts(value: Rec) -> list[Rec]:
    loaded = (_load(mapping(row)) for row in listing(value.get("parts")))
    return [mapping(part) for part in loaded]


# --- torn records ---
def _mend_torn(record: CheckedRecord) -> tuple[Rec, bool] | None:
    """Return the usable part of a torn message: its whole parts, and the beginning of a text."""
    value = record.value
    parts = list(map(mapping, listing(value.get("parts"))))
    if "message" not in value or not parts:
        return None
    last = mapping(parts[-1].get("data"))
    if last.get("type") == "text" and word(last.get("text")).strip():
        parts[-1] = {**parts[-1], "data": {**last, "text": last["text"] + BROKEN_OFF}}
    else:
        parts.pop()
    return ({**value, "parts": parts}, False) if parts else None


# --- sessions ---
def _keep_own_session(found: SourceCandidate, records: list[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    """Put the record of the session first, and leave out those of another one."""
    names = [name for record in records if (name := _session(record))]
    own = found.native_id if found.native_id in names or not names else names[0]
    others: dict[str, list[CheckedRecord]] = {}
    kept: list[CheckedRecord] = []
    for record in records:
        name = _session(record)
        (kept if name in ("", own) else others.setdefault(name, [])).append(record)
    for name, left in others.items():
        note = f"{len(left):,} records of session {name}, left out; --of {name} takes these instead"
        flaws.append(make_flaw("other_session", left[0], note))
    heads = [record for record in kept if "session" in record.value]
    if kept and not heads:
        flaws.append(make_flaw("no_header", kept[0]))
    elif kept and kept[0] is not heads[0]:
        flaws.append(make_flaw("out_of_order", heads[0], "the record of the session is not the first"))
    return [*heads[:1], *(record for record in kept if record not in heads[:1])]


def _session(record: CheckedRecord) -> str:
    for key, field in (("session", "id"), ("message", "session_id"), ("session_message", "session_id")):
        if key in record.value:
            return word(mapping(record.value[key]).get(field))
    return ""


# --- rows ---
def _mend_rows(record: CheckedRecord, flaws: list[Flaw]) -> CheckedRecord:
    """Return a record whose rows can all be read."""
    value = record.value
    if "message" not in value or "parts" not in value:
        return record
    message, parts = mapping(value["message"]), list(map(mapping, listing(value["parts"])))
    kept = [_mend_row(part, record, flaws) for part in parts]
    made = _mend_row(message, record, flaws)
    info = mapping(_load(made)) if made is not None else {}
    if made is None or info.get("role") not in ("user", "assistant"):
        role = "assistant" if any(_load(part).get("type") in _OF_MODEL for part in kept if part is not None) else "user"
        made = {**message, "data": {**info, "role": role}}
    if made == message and kept == parts:
        return record
    return with_value(record, {**value, "message": made, "parts": [part for part in kept if part is not None]})


def _mend_row(row: Rec, record: CheckedRecord, flaws: list[Flaw]) -> Rec | None:
    """Return a row with readable content, the part of it that is there, or None."""
    held = next((row[name] for name in ("data", "text") if isinstance(row.get(name), str)), None)
    if held is None or isinstance(decode_item(held.encode("utf-8", "replace"))[0], dict):
        return row
    whole = close_json(held.encode("utf-8", "replace"))
    if whole is None:
        note = f"the row {word(row.get('id')) or word(row.get('file'))} cannot be read"
        flaws.append(make_flaw("damaged", record, note, lost=True))
        return None
    flaws.append(make_flaw("torn", record, "a row of it breaks off; the beginning is kept", lost=True))
    if isinstance(whole.get("text"), str) and next(reversed(whole)) == "text":
        whole = {**whole, "text": whole["text"] + BROKEN_OFF}
    return {**row, "data": whole} if "data" in row else {**row, "text": _as_text(whole)}


def _as_text(value: Rec) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)


def _load(row: Rec) -> Rec:
    held: Any = row.get("data") if "data" in row else row.get("text")
    return mapping(decode_item(held.encode("utf-8", "replace"))[0] if isinstance(held, str) else held)
