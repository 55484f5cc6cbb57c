"""What can be wrong with the records of a rollout, beyond their bytes: its header, order, sessions, empty content.

Items have no ids of their own to hang together by: what ties them is their order, told by a number in newer files and by
the time in all of the second era.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import structs

from everturn.sources.codex.records import HEADER, ITEM, MIRRORS, OUTPUTS, open_record
from everturn.sources.contract import CheckedRecord, FileCheck, Flaw, SourceCandidate
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.record_check import BROKEN_OFF, judge_records, make_flaw, with_value, without_copies
from everturn.sources.toolkit.values import milliseconds, word

_META = ("session_meta", HEADER)
_NAMED = re.compile(r"rollout-.*?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.jsonl", re.IGNORECASE)
_LEAST = 12  # characters of a torn record, to be known as the beginning of what an event says whole


def check(found: SourceCandidate, pieces: Sequence[CheckedRecord]) -> FileCheck:
    """See `Source.check`."""
    flaws: list[Flaw] = []
    kept = _keep_own_session(found, _mend_torn_records(pieces, flaws), flaws)
    kept = without_copies(kept, _moment_and_words, flaws, lambda piece: piece.value)
    kept = _sort_by_time(_fill_times(kept), flaws)
    flaws += [make_flaw("empty_block", piece) for piece in kept if _is_empty(piece.value)]
    return FileCheck(kept, flaws)


# torn records ---------------------------------------------------------------------------------------------------------
def _mend_torn_records(pieces: Sequence[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    """What breaks off in an item may stand whole in the event that repeats it."""
    repeated: list[str] = []
    if any(piece.is_torn for piece in pieces):
        events = (open_record(piece.value) for piece in pieces if not piece.is_torn)
        repeated = [word(event.item.get("message")).strip() for event in events if event.kind in MIRRORS]
    kept = []
    for piece in pieces:
        said = _words(mapping(piece.value.get("payload"))).strip() if piece.is_torn else ""
        told = next((text for text in repeated if len(said) >= _LEAST and text.startswith(said)), None)
        if told is not None:
            flaws.append(make_flaw("torn", piece, "it breaks off; an event repeats its words whole"))
            piece = structs.replace(with_value(piece, _replace_words(piece.value, told)), is_torn=False)
        kept.append(piece)
    return judge_records(kept, _mend_torn, flaws)


def _replace_words(value: Rec, words: str) -> Rec:
    payload = mapping(value.get("payload"))
    kind = "output_text" if payload.get("role") == "assistant" else "input_text"
    return {**value, "payload": {**payload, "content": [{"type": kind, "text": words}]}}


def _mend_torn(piece: CheckedRecord) -> tuple[Rec, bool] | None:
    """The words of an item that breaks off. A call that may be incomplete is not one that was made."""
    event, payload = open_record(piece.value), mapping(piece.value.get("payload"))
    if event.outer != ITEM or not payload:
        return None
    if event.kind == "message" and _words(payload).strip():
        return {**piece.value, "payload": {**payload, "content": _mark_broken_off(payload["content"])}}, False
    if event.kind in OUTPUTS and payload.get("call_id") and isinstance(payload.get("output"), str):
        return {**piece.value, "payload": {**payload, "output": payload["output"] + BROKEN_OFF}}, False
    return None


def _words(item: Rec) -> str:
    parts = [item["content"]] if isinstance(item.get("content"), str) else listing(item.get("content"))
    return "".join(part if isinstance(part, str) else word(mapping(part).get("text")) for part in parts)


def _mark_broken_off(content: Any) -> Any:
    """Content whose end is missing, with a mark there."""
    if isinstance(content, str):
        return content + BROKEN_OFF
    parts = [part for part in content if _words({"content": [part]})]
    last = parts.pop()
    return [*parts, last + BROKEN_OFF if isinstance(last, str) else {**last, "text": last["text"] + BROKEN_OFF}]


# order ----------------------------------------------------------------------------------------------------------------
def _moment(piece: CheckedRecord) -> int | None:
    """When it was written, where it says so itself."""
    return milliseconds(piece.value.get("timestamp"))[0] if "payload" in piece.value else None


def _moment_and_words(piece: CheckedRecord) -> str | None:
    """Only a record that says when it was written can be known to be there twice."""
    return f"{at} {hash(piece.raw)}" if (at := _moment(piece)) is not None else None


def _fill_times(pieces: list[CheckedRecord]) -> list[CheckedRecord]:
    """A record whose time cannot be read was written at about that of the one before."""
    found, latest = [], None
    for piece in pieces:
        if _moment(piece) is not None:
            latest = piece.value["timestamp"]
        elif latest is not None and "payload" in piece.value:
            piece = with_value(piece, {**piece.value, "timestamp": latest})
        found.append(piece)
    return found


def _sort_by_time(pieces: list[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    """By the time at which they were written. A header, and what does not say it, stays behind the one before."""
    latest, order = 0, []
    for place, piece in enumerate(pieces):
        at = _moment(piece)
        if at is None or _is_meta(piece):
            order.append((latest, place))
            continue
        if at < latest:
            flaws.append(make_flaw("out_of_order", piece, "written earlier than the one before"))
        order.append((at, place))
        latest = max(latest, at)
    return [pieces[place] for _, place in sorted(order)]


# sessions -------------------------------------------------------------------------------------------------------------
def _keep_own_session(found: SourceCandidate, pieces: list[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    """A header of another session that this one was not forked from: what follows is not of this one."""
    metas = [(place, open_record(piece.value).item) for place, piece in enumerate(pieces) if _is_meta(piece)]
    if not metas:
        if pieces:
            flaws.append(make_flaw("no_header", pieces[0]))
        return pieces
    names = [word(item.get("id")) for _, item in metas]
    own = found.native_id if found.native_id in names else names[0]
    named = _NAMED.search(found.path.name)
    if named and named[1].lower() != own.lower() == names[0].lower():
        flaws.append(make_flaw("wrong_session", pieces[metas[0][0]], f"it says session {own}, its name {named[1]}"))
    if metas[0][0] > 0 and names[0] == own:
        flaws.append(make_flaw("out_of_order", pieces[metas[0][0]], "its header is not its first record"))
    return _drop_other_sessions(pieces, metas, own, flaws)


def _drop_other_sessions(
    pieces: list[CheckedRecord], metas: list[tuple[int, Rec]], own: str, flaws: list[Flaw]
) -> list[CheckedRecord]:
    """A fork says first who it is, then who it was copied from."""
    family = {own, ""}
    kept: list[CheckedRecord] = []
    starts = dict(metas)
    is_other = False
    for place, piece in enumerate(pieces):
        if (item := starts.get(place)) is not None:
            name = word(item.get("id"))
            if name in family or (place - 1 in starts and not is_other):
                origin = word(mapping(item.get("history_base")).get("thread_id"))
                family |= {name, word(item.get("forked_from_id")), origin}
            is_other = name not in family
            if is_other:
                note = f"from here on records of session {name}, left out; --of {name} takes these instead"
                flaws.append(make_flaw("other_session", piece, note))
        if not is_other:
            kept.append(piece)
    return sorted(kept, key=lambda piece: not _is_own(piece, own)) if kept and not _is_meta(kept[0]) else kept


def _is_meta(piece: CheckedRecord) -> bool:
    return open_record(piece.value).outer in _META


def _is_own(piece: CheckedRecord, own: str) -> bool:
    return _is_meta(piece) and word(open_record(piece.value).item.get("id")) == own


def _is_empty(value: Rec) -> bool:
    event = open_record(value)
    if event.outer != ITEM or event.kind != "message":
        return False
    content = event.item.get("content")
    return isinstance(content, list) and not any(_words({"content": [part]}) or _is_not_text(part) for part in content)


def _is_not_text(part: Any) -> bool:
    return mapping(part).get("type") not in ("input_text", "output_text", "text")
