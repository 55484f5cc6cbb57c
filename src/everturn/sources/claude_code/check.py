"""What can be wrong with the records of a transcript, beyond their bytes: ids, parents, order, sessions, empty content."""

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

_SAID = ("user", "assistant")


def check(found: SourceCandidate, pieces: Sequence[CheckedRecord]) -> FileCheck:
    """See `Source.check`."""
    flaws: list[Flaw] = []
    kept = _infer_ids(judge_records(pieces, _mend_torn, flaws))
    kept = _keep_own_session(found, kept, flaws)
    kept = without_copies(kept, _uuid, flaws, lambda piece: (piece.value.get("type"), piece.value.get("message")))
    kept = _order_by_parents(kept, flaws)
    flaws += [make_flaw("empty_block", piece) for piece in kept if _has_empty_block(piece.value)]
    return FileCheck(kept, flaws)


# torn records ---------------------------------------------------------------------------------------------------------
def _mend_torn(piece: CheckedRecord) -> tuple[Rec, bool] | None:
    """The words of a record that breaks off. A call that may be incomplete is not one that was made."""
    value, message = piece.value, mapping(piece.value.get("message"))
    content = message.get("content")
    kind = value.get("type") if value.get("type") in _SAID else message.get("role")
    if kind not in _SAID:
        return None
    if next(reversed(value)) != "message" or next(reversed(message)) != "content":
        return {**value, "type": kind}, True
    shown = _mark_broken_off(content)
    return ({**value, "type": kind, "message": {**message, "content": shown}}, False) if shown else None


def _mark_broken_off(content: Any) -> Any:
    """Content whose end is missing, with a mark there."""
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
        blocks.append(
            {
                **last,
                "content": output + BROKEN_OFF if isinstance(output, str) else _mark_broken_off(output) or BROKEN_OFF,
            }
        )
    return blocks


def _infer_ids(pieces: list[CheckedRecord]) -> list[CheckedRecord]:
    """A record that was torn before its id has the id that one beside it names as its parent, or that alone is sought."""
    names = {_uuid(piece) for piece in pieces}
    sought = {name for piece in pieces if (name := _parent(piece)) is not None and name not in names}
    nameless = [place for place, piece in enumerate(pieces) if piece.is_torn and _uuid(piece) is None]
    for place in nameless:
        beside = (*pieces[place + 1 : place + 2], *pieces[max(0, place - 1) : place])
        fitting = [name for piece in beside if (name := _parent(piece)) in sought]
        if not fitting and len(nameless) == len(sought) == 1:
            fitting = list(sought)
        if fitting:
            pieces[place] = with_value(pieces[place], {**pieces[place].value, "uuid": fitting[0]})
            sought.discard(fitting[0])
    return pieces


# sessions -------------------------------------------------------------------------------------------------------------
def _keep_own_session(found: SourceCandidate, pieces: list[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    """Records of another session that no parent ties to this one are left out; those that are tied to it stay."""
    counted = Counter(name for piece in pieces if (name := _session(piece)) and _uuid(piece))
    if not counted:
        return pieces
    usual = counted.most_common(1)[0][0]
    own = found.native_id if found.native_id in counted else usual
    roots = _roots(pieces)
    tied = {root for piece, root in zip(pieces, roots, strict=True) if _session(piece) in ("", own) and root}
    loose = {_session(piece) for piece, root in zip(pieces, roots, strict=True) if root and root not in tied}
    others: dict[str, list[CheckedRecord]] = {}
    kept = []
    for piece, root in zip(pieces, roots, strict=True):
        if (root and root not in tied) or (not root and _session(piece) in loose):
            others.setdefault(_session(piece), []).append(piece)
        else:
            kept.append(piece)
    flaws += _flag_other_sessions(others)
    if found.kind == "main" and own != found.native_id and _is_id(found.native_id):
        flaws.append(make_flaw("wrong_session", kept[0], f"its records say session {own}, its name {found.native_id}"))
    flaws += _flag_wrong_session(kept, own)
    return kept


def _flag_other_sessions(others: dict[str, list[CheckedRecord]]) -> Iterator[Flaw]:
    for name, pieces in others.items():
        first, last = pieces[0], pieces[-1]
        note = f"{len(pieces):,} records of session {name}, left out; --of {name} takes these instead"
        yield Flaw(
            "other_session", note, first.start, max(last.start + last.size - first.start, first.size), first.copy
        )


def _flag_wrong_session(kept: list[CheckedRecord], own: str) -> Iterator[Flaw]:
    strange = [piece for piece in kept if _session(piece) not in ("", own) and _uuid(piece)]
    if strange:
        note = f"{len(strange):,} records say another session, but hang on this one"
        yield make_flaw("wrong_session", strange[0], note)


def _roots(pieces: Sequence[CheckedRecord]) -> list[str]:
    """For each piece with an id: the id of one record that stands for all it is tied to; "" for those without."""
    up = {name: name for piece in pieces if (name := _uuid(piece)) is not None}

    def root(name: str) -> str:
        while up[name] != name:
            up[name] = name = up[up[name]]
        return name

    for piece in pieces:
        name, parent = _uuid(piece), _parent(piece)
        if name is not None and parent in up:
            up[root(name)] = root(parent)
    return [root(name) if (name := _uuid(piece)) is not None else "" for piece in pieces]


# parents --------------------------------------------------------------------------------------------------------------
def _order_by_parents(pieces: list[CheckedRecord], flaws: list[Flaw]) -> list[CheckedRecord]:
    places: dict[str, int] = {}
    for place, piece in enumerate(pieces):
        if (name := _uuid(piece)) is not None:
            places.setdefault(name, place)
    parents = [places.get(_parent(piece) or "") for piece in pieces]
    rootless = []
    for place, piece in enumerate(pieces):
        parent = _parent(piece)
        if parent is None or _uuid(piece) is None:
            continue
        if parent not in places:
            note = f"it follows a record {parent[:8]} that is nowhere: what that one held is lost"
            flaws.append(make_flaw("dangling_parent", piece, note, lost=True))
            rootless.append(place)
        elif parent == _uuid(piece):
            flaws.append(make_flaw("cycle", piece, "it is its own parent"))
            parents[place] = None
            rootless.append(place)
    if rootless:
        _adopt_by_time(pieces, parents, rootless)
    return order_records(pieces, parents.__getitem__, flaws)


def _adopt_by_time(pieces: list[CheckedRecord], parents: list[int | None], rootless: list[int]) -> None:
    """Where a record has lost its parent the time tells whether it stands before what it followed. Otherwise times say
    little about the order: they are those of different clocks, and of copies."""
    times = [(milliseconds(piece.value.get("timestamp"))[0], place) for place, piece in enumerate(pieces)]
    known = sorted((at, place) for at, place in times if at is not None and _uuid(pieces[place]) is not None)
    roots = _roots(pieces)
    earliest: dict[str, int] = {}
    for at, place in known:
        earliest.setdefault(roots[place], at)
    for place in rootless:
        before = bisect_left(known, (earliest.get(roots[place], 0), -1)) - 1
        if before >= 0:
            parents[place] = known[before][1]


def _has_empty_block(value: Rec) -> bool:
    """Blank lines as an answer are common, and the client does not send them; an empty text, or none, it sends."""
    if value.get("type") not in _SAID or value.get("isMeta"):
        return False
    content = mapping(value.get("message")).get("content")
    if not isinstance(content, list):
        return content is None or content == ""
    texts = [block.get("text") for block in content if isinstance(block, dict) and block.get("type") == "text"]
    return not content or any(not text for text in texts)


def _uuid(piece: CheckedRecord) -> str | None:
    return _text(piece, "uuid")


def _parent(piece: CheckedRecord) -> str | None:
    return _text(piece, "parentUuid")


def _session(piece: CheckedRecord) -> str:
    return _text(piece, "sessionId") or ""


def _text(piece: CheckedRecord, key: str) -> str | None:
    found = piece.value.get(key)
    return found if isinstance(found, str) and found else None


def _is_id(name: str) -> bool:
    return len(name) == 36 and name.count("-") == 4
