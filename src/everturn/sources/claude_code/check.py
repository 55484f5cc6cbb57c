"""Checks the records of a transcript beyond their bytes: ids, parents, order, sessions, empty content."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from everturn.sources.contract import CheckedRecord, FileCheck, Flaw, SourceCandidate
from everturn.sources.toolkit.line_reader import Rec, mapping
from everturn.sources.toolkit.record_check import (
    BROKEN_OFF,
    judge_records,
    make_flaw,
    order_records,
    with_value,
    without_copies,
)
from everturn.sources.toolkit.values import milliseconds, word

_ROLES = ("user", "assistant")


def check(found: SourceCandidate, records: Sequence[CheckedRecord]) -> FileCheck:
    flaws: list[Flaw] = []
    kept = _infer_ids(judge_records(records, _mend_torn, flaws))
    kept = _keep_own_session(found, kept, flaws)
    kept = without_copies(kept, _uuid, flaws, lambda record: (record.value.get("type"), record.value.get("message")))
    kept = _order_by_parents(kept, flaws)
    flaws += [make_flaw("empty_block", record) for record in kept if _has_empty_block(record.value)]
    return FileCheck(kept, flaws)


def follows(before: CheckedRecord, after: CheckedRecord) -> bool:
    return _parent(after) is not None and _parent(after) == _uuid(before)


# --- torn records ---
def _mend_torn(record: CheckedRecord) -> tuple[Rec, bool] | None:
    """Return the usable part of a torn record. A call that may be incomplete was never made."""
    value, message = record.value, mapping(record.value.get("message"))
    content = message.get("content")
    kind = value.get("type") if value.get("type") in _ROLES else message.get("role")
    if kind not in _ROLES:
        return None
    if "content" not in message:
        return None
    if next(reversed(value)) != "message" or next(reversed(message)) != "content":
        return {**value, "type": kind}, True
    shown = _mark_broken_off(content)
    return ({**value, "type": kind, "message": {**message, "content": shown}}, False) if shown else None


def _mark_broken_off(content: Any) -> Any:
    """Mark the end of content that breaks off; None when there is no content."""
    if isinstance(content, str):
        return content + BROKEN_OFF if content.strip() else None
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    if not blocks:
        return None
    last = blocks.pop()
    if last.get("type") == "text" and word(last.get("text")).strip():
        blocks.append({**last, "text": last["text"] + BROKEN_OFF})
    elif last.get("type") == "tool_result" and word(last.get("tool_use_id")):
        output = last.get("content")
        marked = output + BROKEN_OFF if isinstance(output, str) else _mark_broken_off(output) or BROKEN_OFF
        blocks.append({**last, "content": marked})
    return blocks


def _infer_ids(records: list[CheckedRecord]) -> list[CheckedRecord]:
    """Give a record torn before its id the id that a neighbour names as its parent, or the only one missing."""
    names = {_uuid(record) for record in records}
    sought = {name for record in records if (name := _parent(record)) is not None and name not in names}
    nameless = [index for index, record in enumerate(records) if record.is_torn and _uuid(record) is None]
    for index in nameless:
        beside = (*records[index + 1 : index + 2], *records[max(0, index - 1) : index])
        fitting = [name for record in beside if (name := _parent(record)) in sought]
        if not fitting and len(nameless) == len(sought) == 1:
            fitting = list(sought)
        if fitting:
            records[index] = with_value(records[index], {**records[index].value, "uuid": fitting[0]})
            sought.discard(fitting[0])
    return records


# --- sessions ---
def _keep_own_session(found: SourceCandidate, records: list[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    """Leave out records of another session, unless a parent ties them to this one."""
    counted = Counter(name for record in records if (name := _session(record)) and _uuid(record))
    if not counted:
        return records
    usual = counted.most_common(1)[0][0]
    own = found.native_id if found.native_id in counted else usual
    roots = _roots(records)
    tied = {root for record, root in zip(records, roots, strict=True) if _session(record) in ("", own) and root}
    loose = {_session(record) for record, root in zip(records, roots, strict=True) if root and root not in tied}
    others: dict[str, list[CheckedRecord]] = {}
    kept = []
    for record, root in zip(records, roots, strict=True):
        if (root and root not in tied) or (not root and _session(record) in loose):
            others.setdefault(_session(record), []).append(record)
        else:
            kept.append(record)
    flaws += _flag_other_sessions(others)
    if found.kind == "main" and own != found.native_id and _is_id(found.native_id):
        flaws.append(make_flaw("wrong_session", kept[0], f"its records say session {own}, its name {found.native_id}"))
    flaws += _flag_wrong_session(kept, own)
    return kept


def _flag_other_sessions(others: dict[str, list[CheckedRecord]]) -> Iterator[Flaw]:
    for name, records in others.items():
        first, last = records[0], records[-1]
        note = f"{len(records):,} records of session {name}, left out; --of {name} takes these instead"
        size = max(last.start + last.size - first.start, first.size)
        yield Flaw("other_session", note, first.start, size, first.copy)


def _flag_wrong_session(kept: list[CheckedRecord], own: str) -> Iterator[Flaw]:
    strange = [record for record in kept if _session(record) not in ("", own) and _uuid(record)]
    if strange:
        note = f"{len(strange):,} records say another session, but hang on this one"
        yield make_flaw("wrong_session", strange[0], note)


def _roots(records: Sequence[CheckedRecord]) -> list[str]:
    """Return for each record with an id the id of one record that represents all it is tied to; "" without an id."""
    up = {name: name for record in records if (name := _uuid(record)) is not None}

    def root(name: str) -> str:
        while up[name] != name:
            up[name] = name = up[up[name]]
        return name

    for record in records:
        name, parent = _uuid(record), _parent(record)
        if name is not None and parent in up:
            up[root(name)] = root(parent)
    return [root(name) if (name := _uuid(record)) is not None else "" for record in records]


# --- parents ---
def _order_by_parents(records: list[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    indexes: dict[str, int] = {}
    for index, record in enumerate(records):
        if (name := _uuid(record)) is not None:
            indexes.setdefault(name, index)
    parents = [indexes.get(_parent(record) or "") for record in records]
    rootless = []
    for index, record in enumerate(records):
        parent = _parent(record)
        if parent is None or _uuid(record) is None:
            continue
        if parent not in indexes:
            note = f"it follows a record {parent[:8]} that is nowhere: what that one held is lost"
            flaws.append(make_flaw("dangling_parent", record, note, lost=True))
            rootless.append(index)
        elif parent == _uuid(record):
            flaws.append(make_flaw("cycle", record, "it is its own parent"))
            parents[index] = None
            rootless.append(index)
    if rootless:
        _adopt_by_time(records, parents, rootless)
    return order_records(records, parents.__getitem__, flaws)


def _adopt_by_time(records: list[CheckedRecord], parents: list[int | None], rootless: list[int]) -> None:
    """Give records without a parent one by their time. Otherwise times say little about the order: they come from
    different clocks, and from copies.
    """
    times = [(milliseconds(record.value.get("timestamp"))[0], index) for index, record in enumerate(records)]
    known = sorted((at, index) for at, index in times if at is not None and _uuid(records[index]) is not None)
    roots = _roots(records)
    earliest: dict[str, int] = {}
    for at, index in known:
        earliest.setdefault(roots[index], at)
    for index in rootless:
        before = bisect_left(known, (earliest.get(roots[index], 0), -1)) - 1
        if before >= 0:
            parents[index] = known[before][1]


def _has_empty_block(value: Rec) -> bool:
    """Return whether the client would send empty content. It skips blank text, which is common, but not empty text."""
    if value.get("type") not in _ROLES or value.get("isMeta"):
        return False
    content = mapping(value.get("message")).get("content")
    if not isinstance(content, list):
        return content is None or content == ""
    texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return not content or any(not text for text in texts)


def _uuid(record: CheckedRecord) -> str | None:
    return _text(record, "uuid")


def _parent(record: CheckedRecord) -> str | None:
    return _text(record, "parentUuid")


def _session(record: CheckedRecord) -> str:
    return _text(record, "sessionId") or ""


def _text(record: CheckedRecord, key: str) -> str | None:
    found = record.value.get(key)
    return found if isinstance(found, str) and found else None


def _is_id(name: str) -> bool:
    return len(name) == 36 and name.count("-") == 4
