"""Checks the records of a rollout beyond their bytes: its header, order, sessions, empty content.

Items have no ids that link them. Their order does, given by a number in newer files and by the time in all files of the
second era.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from everturn.sources.codex.records import HEADER, ITEM, MIRRORS, OUTPUTS, open_record
from everturn.sources.contract import CheckedRecord, FileCheck, Flaw, SourceCandidate
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.record_check import (
    BROKEN_OFF,
    fill_times,
    judge_records,
    make_flaw,
    sort_records,
    with_value,
    without_copies,
)
from everturn.sources.toolkit.values import milliseconds, word

_META = ("session_meta", HEADER)
_NAMED = re.compile(r"rollout-.*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl", re.IGNORECASE)
_LEAST = 12  # characters of a torn record by which an event is recognized as its repetition


def check(found: SourceCandidate, records: Sequence[CheckedRecord]) -> FileCheck:
    flaws: list[Flaw] = []
    kept = _keep_own_session(found, _mend_torn_records(records, flaws), flaws)
    kept = without_copies(kept, _record_id, flaws, lambda record: record.value)
    kept = fill_times(kept, _written_at, lambda one: "payload" in one.value)
    kept = sort_records(kept, lambda one: None if _is_meta(one) else _written_at(one), flaws)
    flaws += [make_flaw("empty_block", record) for record in kept if _is_empty(record.value)]
    return FileCheck(kept, flaws)


# --- torn records ---
def _mend_torn_records(records: Sequence[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    """Complete torn items from the event that repeats them, and judge the rest."""
    repeated: list[str] = []
    if any(record.is_torn for record in records):
        events = (open_record(record.value) for record in records if not record.is_torn)
        repeated = [word(event.item.get("message")).strip() for event in events if event.kind in MIRRORS]
    kept = []
    for record in records:
        torn = _item_text(mapping(record.value.get("payload"))).strip() if record.is_torn else ""
        whole = next((text for text in repeated if len(torn) >= _LEAST and text.startswith(torn)), None)
        if whole is not None:
            flaws.append(make_flaw("torn", record, "it breaks off; an event repeats its words whole"))
            record = structs.replace(with_value(record, _replace_text(record.value, whole)), is_torn=False)
        kept.append(record)
    return judge_records(kept, _mend_torn, flaws)


def _replace_text(value: Rec, text: str) -> Rec:
    payload = mapping(value.get("payload"))
    kind = "output_text" if payload.get("role") == "assistant" else "input_text"
    return {**value, "payload": {**payload, "content": [{"type": kind, "text": text}]}}


def _mend_torn(record: CheckedRecord) -> tuple[Rec, bool] | None:
    """Return the usable part of a torn item. A call that may be incomplete was never made."""
    event, payload = open_record(record.value), mapping(record.value.get("payload"))
    if event.outer != ITEM or not payload:
        return None
    if event.kind == "message" and _item_text(payload).strip():
        return {**record.value, "payload": {**payload, "content": _mark_broken_off(payload["content"])}}, False
    if event.kind in OUTPUTS and payload.get("call_id") and isinstance(payload.get("output"), str):
        return {**record.value, "payload": {**payload, "output": payload["output"] + BROKEN_OFF}}, False
    return None


def _item_text(item: Rec) -> str:
    parts = [item["content"]] if isinstance(item.get("content"), str) else listing(item.get("content"))
    return "".join(part if isinstance(part, str) else word(mapping(part).get("text")) for part in parts)


def _mark_broken_off(content: Any) -> Any:
    """Mark the end of content that breaks off."""
    if isinstance(content, str):
        return content + BROKEN_OFF
    parts = [part for part in content if _item_text({"content": [part]})]
    last = parts.pop()
    return [*parts, last + BROKEN_OFF if isinstance(last, str) else {**last, "text": last["text"] + BROKEN_OFF}]


# --- order ---
def _written_at(record: CheckedRecord) -> int | None:
    """Return when a record was written, if it says so itself."""
    return milliseconds(record.value.get("timestamp"))[0] if "payload" in record.value else None


def _record_id(record: CheckedRecord) -> str | None:
    """Return an id for duplicates; only a record with a time can be recognized as one."""
    return f"{at} {hash(record.raw)}" if (at := _written_at(record)) is not None else None


# --- sessions ---
def _keep_own_session(found: SourceCandidate, records: list[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    """Leave out what follows the header of a session that this one was not forked from."""
    metas = [(index, open_record(record.value).item) for index, record in enumerate(records) if _is_meta(record)]
    if not metas:
        if records:
            flaws.append(make_flaw("no_header", records[0]))
        return records
    names = [word(item.get("id")) for _, item in metas]
    own = found.native_id if found.native_id in names else names[0]
    if (named := _NAMED.search(found.path.name)) and named[1].lower() != own.lower() == names[0].lower():
        flaws.append(make_flaw("wrong_session", records[metas[0][0]], f"it says session {own}, its name {named[1]}"))
    if metas[0][0] > 0 and names[0] == own:
        flaws.append(make_flaw("out_of_order", records[metas[0][0]], "its header is not its first record"))
    return _drop_other_sessions(records, metas, own, flaws)


def _drop_other_sessions(
    records: list[CheckedRecord], metas: list[tuple[int, Rec]], own: str, flaws: list[Flaw]
) -> list[CheckedRecord]:
    """Drop records of other sessions. A fork has its own header first, then that of the original."""
    family = {own, ""}
    kept: list[CheckedRecord] = []
    starts = dict(metas)
    is_other = False
    for index, record in enumerate(records):
        if (item := starts.get(index)) is not None:
            name = word(item.get("id"))
            if name in family or (index - 1 in starts and not is_other):
                origin = word(mapping(item.get("history_base")).get("thread_id"))
                family |= {name, word(item.get("forked_from_id")), origin}
            is_other = name not in family
            if is_other:
                note = f"from here on records of session {name}, left out; --of {name} takes these instead"
                flaws.append(make_flaw("other_session", record, note))
        if not is_other:
            kept.append(record)
    return sorted(kept, key=lambda record: not _is_own(record, own)) if kept and not _is_meta(kept[0]) else kept


def _is_meta(record: CheckedRecord) -> bool:
    return open_record(record.value).outer in _META


def _is_own(record: CheckedRecord, own: str) -> bool:
    return _is_meta(record) and word(open_record(record.value).item.get("id")) == own


def _is_empty(value: Rec) -> bool:
    event = open_record(value)
    if event.outer != ITEM or event.kind != "message":
        return False
    content = event.item.get("content")
    return isinstance(content, list) and not any(
        _item_text({"content": [part]}) or mapping(part).get("type") not in ("input_text", "output_text", "text")
        for part in content
    )
