"""Checks the records of a session in lines beyond their bytes: its header, order, sessions, torn records, empty content.

A message is written again with the same id when it has grown, so records that share an id are no flaw.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from everturn.sources.contract import CheckedRecord, FileCheck, Flaw, SourceCandidate
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.record_check import BROKEN_OFF, fill_times, judge_records, make_flaw, sort_records
from everturn.sources.toolkit.values import milliseconds, word

_NAMED = re.compile(r"session-[\dT-]+-([0-9a-f]{8})\.jsonl", re.IGNORECASE)
_SPOKEN = ("user", "gemini")


def check(found: SourceCandidate, records: Sequence[CheckedRecord]) -> FileCheck:
    flaws: list[Flaw] = []
    kept = _keep_own_session(found, judge_records(records, _mend_torn, flaws), flaws)
    kept = _without_copies(kept, flaws)
    kept = fill_times(kept, _written_at, _message_id)
    again = _written_again(kept)
    kept = sort_records(kept, _written_at, flaws, is_again=lambda record: (record.copy, record.start) in again)
    flaws += [make_flaw("empty_block", record) for record in kept if _is_empty(record.value)]
    return FileCheck(kept, flaws)


# --- torn records ---
def _mend_torn(record: CheckedRecord) -> tuple[Rec, bool] | None:
    """Return the usable part of a torn message. A call that may be incomplete was never made."""
    value = record.value
    if value.get("type") not in _SPOKEN or not value.get("id"):
        return None
    last = next(reversed(value))
    if last == "toolCalls":
        calls = [
            call for call in map(mapping, listing(value["toolCalls"])) if call.get("status") and call.get("result")
        ]
        return {**value, "toolCalls": calls}, False
    if last != "content":
        return (value, True) if "content" in value else None
    shown = _mark_broken_off(value["content"])
    return ({**value, "content": shown}, False) if shown else None


def _mark_broken_off(content: Any) -> Any:
    """Mark the end of content that breaks off; None when there is no content."""
    if isinstance(content, str):
        return content + BROKEN_OFF if content.strip() else None
    parts = [part for part in map(mapping, listing(content)) if word(part.get("text")).strip()]
    return [*parts[:-1], {"text": parts[-1]["text"] + BROKEN_OFF}] if parts else None


# --- sessions ---
def _keep_own_session(found: SourceCandidate, records: list[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    """Put the header first, and leave out what follows that of another session."""
    names = [word(record.value["sessionId"]) for record in records if _is_header(record.value)]
    if not names:
        flaws += [make_flaw("no_header", records[0])] if records else []
        return records
    own = found.native_id if found.native_id in names else names[0]
    kept, is_other = list[CheckedRecord](), False
    for record in records:
        if _is_header(record.value):
            name = word(record.value["sessionId"])
            is_other = name != own
            if is_other:
                note = f"from here on records of session {name}, left out; --of {name} takes these instead"
                flaws.append(make_flaw("other_session", record, note))
        if not is_other:
            kept.append(record)
    return _with_header_first(found, kept, flaws)


def _with_header_first(found: SourceCandidate, kept: list[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    header = next(record for record in kept if _is_header(record.value))
    own = word(header.value["sessionId"])
    if (named := _NAMED.fullmatch(found.path.name)) and not own.lower().startswith(named[1].lower()):
        flaws.append(make_flaw("wrong_session", header, f"it says session {own}, its name {named[1]}"))
    if kept[0] is header:
        return kept
    flaws.append(make_flaw("out_of_order", header, "its header is not its first record"))
    return [header, *(record for record in kept if record is not header)]


def _without_copies(records: list[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    """Leave out records that were written before, with others between them."""
    seen: dict[bytes, int] = {}
    kept: list[CheckedRecord] = []
    for record in records:
        name = _message_id(record)
        is_last = bool(kept) and name == _message_id(kept[-1])
        if (name or _is_header(record.value)) and record.raw in seen and not is_last:
            flaws.append(make_flaw("duplicate", record, f"written twice, first at byte {seen[record.raw]:,}"))
        else:
            seen.setdefault(record.raw, record.start)
            kept.append(record)
    return kept


# --- records ---
def _is_header(value: Rec) -> bool:
    return "type" not in value and bool(word(value.get("sessionId")))


def _message_id(record: CheckedRecord) -> str:
    return word(record.value.get("id")) if "type" in record.value else ""


def _written_again(records: Sequence[CheckedRecord]) -> set[tuple[int, int]]:
    """Return the places of the records of a message but the first."""
    seen: set[str] = set()
    found = set()
    for record in records:
        if (name := _message_id(record)) in seen:
            found.add((record.copy, record.start))
        seen.add(name)
    return found


def _written_at(record: CheckedRecord) -> int | None:
    return milliseconds(record.value.get("timestamp"))[0] if _message_id(record) else None


def _is_empty(value: Rec) -> bool:
    """Whether a message has parts, and none of them has content. An answer of calls alone has an empty text."""
    parts = value.get("content")
    if value.get("type") not in _SPOKEN or not isinstance(parts, list) or value.get("toolCalls"):
        return False
    return not any(any(mapping(part).values()) for part in parts)
