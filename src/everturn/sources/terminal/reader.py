"""A talk as lines, and lines as messages.

The first line of a conversation says what it is (`{"talk": …}`), every other one is one thing that was drawn
(`{"said": …, "n": …}`). Lines are what the archive keeps of a conversation beside the recording itself; a message can be
shown again from its own line.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from everturn.model.conversation import Block, CallEnd, CallStart, Message, Problem, fingerprint, prepared
from everturn.model.vocabulary import ACTIONS, CALL_KINDS, ERROR_CLASSES, FIDELITIES, MESSAGE_KINDS, PRECISIONS, ROLES
from everturn.sources.contract import Member, SourceCandidate, read_beginning
from everturn.sources.terminal.transcript import DrawnCall, DrawnSaying, ScreenTalk
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    add,
    listing,
    mapping,
    records,
    view_placed,
)
from everturn.sources.toolkit.values import count, strings, word

if TYPE_CHECKING:
    from everturn.sources.terminal.coverage import ScreenCoverage

_LARGEST = 512 << 20
_ENOUGH = 0.99  # of the text on the screen
_MOST_NAMED = 20  # byte ranges in a report
_END_OF_TIME = 253_402_300_800_000  # the year 10000, in milliseconds
_ORIGINS = {"user": "human", "assistant": "model", "tool": "tool", "system": "system"}
_FIELDS = {"user": "prompt", "assistant": "answer", "tool": "tool_output", "system": "meta"}


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    """Every conversation of a recording."""
    from everturn.sources.terminal.coverage import ScreenWitness, compare
    from everturn.sources.terminal.dialects import read_screens
    from everturn.sources.terminal.views import transcribe

    if path.stat().st_size > _LARGEST:
        return
    data = path.read_bytes()
    witness = ScreenWitness()
    talks = read_screens(transcribe(data, found.path.name, _read_timing(found.path), witness))
    coverage = compare(witness, talks)
    name = blake2b(data[:4096], digest_size=6).hexdigest()
    for number, talk in enumerate(talks):
        native_id = talk.native_id or f"{name}-{number + 1}"
        last = number == len(talks) - 1  # what belongs to no talk is told at the end
        yield Member(str(number + 1), _lines(talk, native_id, coverage if last else None), native_id=native_id)


def _read_timing(path: Path) -> bytes | None:
    """The times `script` wrote into a file of their own, where it lies beside the recording."""
    from everturn.sources.terminal.recordings import timing_names

    for name in timing_names(path.name):
        beside = path.with_name(name)
        if beside.is_file() and beside.stat().st_size <= _LARGEST:
            return beside.read_bytes()
    return None


def find_recordings(root: Path) -> Iterator[SourceCandidate]:
    """Every recording below a folder."""
    from everturn.sources.terminal.recordings import recognise_recording

    for path in sorted(root.rglob("*")):
        if (
            path.is_file()
            and not path.is_symlink()
            and recognise_recording(read_beginning(path), path.name) is not None
        ):
            yield SourceCandidate(path, "container")


class TerminalReaderState(msgspec.Struct):
    open_line: bool = False


class TerminalReader(LineReader[TerminalReaderState]):
    """Reads a conversation that `unpack` wrote out."""

    kind = TerminalReaderState

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        talk = self._open_session()
        head = mapping(record.get("talk"))
        if head:
            titles = [word(title) for title in listing(head.get("titles"))]
            talk.learn(
                title=titles[-1] if titles else "", title_rank=2, workspace=word(head.get("workspace")),
                client=word(head.get("client")),
            )  # fmt: skip
            return "talk", "known", ""
        message = _message(record, place, self._name)
        add(self._gathering, talk, message)
        if unread := mapping(record.get("unread")):
            self._gathering.problems.extend(_report_unread(unread, place))
            return "unread", "message", ""
        return ("?", "unknown", "") if message.kind == "unknown" else ("said", "message", "")


def workspace(head: bytes) -> str:
    """Where it took place, if the screen said so."""
    for record in records(head):
        return word(mapping(record.get("talk")).get("workspace"))
    return ""


def _lines(talk: ScreenTalk, native_id: str, coverage: ScreenCoverage | None = None) -> Iterator[bytes]:
    head = {name: getattr(talk, name) for name in talk.__struct_fields__ if name != "said"}
    yield msgspec.json.encode({"talk": head | {"native_id": native_id}}) + b"\n"
    for number, said in enumerate(talk.said):
        yield msgspec.json.encode({"said": said, "n": number}) + b"\n"
    if coverage is not None and (coverage.missing or coverage.unanswered):
        said = _build_unread(coverage)
        unread = {
            "share": round(coverage.share, 4),
            "missing": [(passage.first, passage.last) for passage in coverage.missing],
            "unanswered": [(passage.first, passage.last) for passage in coverage.unanswered],
        }
        yield msgspec.json.encode({"said": said, "n": len(talk.said), "unread": unread}) + b"\n"


def _build_unread(coverage: ScreenCoverage) -> DrawnSaying:
    """Return the text that was shown and is part of no talk as an item of its own, so that it can be found."""
    passages = (*coverage.missing, *coverage.unanswered)
    places = min(passage.first for passage in passages), max(passage.last for passage in passages)
    text = "\n".join(dict.fromkeys(passage.text for passage in passages))
    return DrawnSaying("system", "unknown", text, bytes=places, fidelity="partial")


def _report_unread(unread: Rec, place: RecordPlace) -> Iterator[Problem]:
    """Yield the problems of a recording of which not everything was read."""
    share = unread.get("share")
    if isinstance(share, float) and share < _ENOUGH:
        ranges = _name_ranges(unread.get("missing"))
        reason = (
            f"{1 - share:.1%} of the text on the screen is part of no turn and is kept as it was drawn, at {ranges}"
        )
        yield Problem("screen_unread", reason, place.start, place.size)
    if listing(unread.get("unanswered")):
        ranges = _name_ranges(unread.get("unanswered"))
        reason = (
            f"text left the input field and is no prompt that was found: sent and not read, or discarded; at {ranges}"
        )
        yield Problem("prompt_unread", reason, place.start, place.size)


def _name_ranges(value: Any) -> str:
    given = (tuple(pair) for pair in listing(value) if isinstance(pair, list) and len(pair) == 2)
    pairs = list(dict.fromkeys(given))  # several lines of one frame have the same bytes
    named = ", ".join(f"{first}–{last}" for first, last in pairs[:_MOST_NAMED])
    more = f" and {len(pairs) - _MOST_NAMED} more places" if len(pairs) > _MOST_NAMED else ""
    return f"bytes {named}{more}"


def _message(record: Rec, place: RecordPlace, native_id: str = "") -> Message:
    try:
        said = msgspec.convert(record.get("said"), prepared(DrawnSaying))
    except msgspec.ValidationError:  # a line that was damaged since
        return _unknown(record, place)
    number = record.get("n")
    role = _choose_known(ROLES, said.role, "system")
    kind = _choose_known(MESSAGE_KINDS, said.kind, "unknown")
    at = said.at if said.at is not None and abs(said.at) < _END_OF_TIME else None
    return Message(
        role=role,
        origin="system" if kind == "interrupt" else _ORIGINS[role],
        kind="queued" if said.queued and role == "user" else kind,
        at=at,
        precision="" if at is None else _choose_known(PRECISIONS[1:], said.precision, "ms"),
        provider_id=f"{native_id}/{said.step}" if said.step >= 0 else "",
        model=said.model,
        blocks=tuple(_blocks(said, role, number if isinstance(number, int) else 0)),
        starts_turn=said.starts_turn,
        start=place.start,
        size=place.size,
        fidelity=_choose_known(FIDELITIES, said.fidelity, "partial"),
        fingerprint=fingerprint(f"{native_id}/{number}", f"{said.role}\0{said.text}"),
        reported_ms=count(said.duration_ms),
    )


view = partial(view_placed, _message)


def _unknown(record: Rec, place: RecordPlace) -> Message:
    block = Block("unknown", "\n".join(strings(record)), "meta")
    return Message(
        "system", "system", "unknown", blocks=(block,), start=place.start, size=place.size, fidelity="partial"
    )


def _choose_known(known: tuple[str, ...], value: str, otherwise: str) -> str:
    return value if value in known else otherwise


def _blocks(said: DrawnSaying, role: str, number: int) -> Iterator[Block]:
    if said.thinking:
        yield Block("thinking", said.thinking, "thinking")
    if said.text:
        yield Block("text", said.text, _FIELDS[role])
    if said.attached:
        yield Block("document", "\n".join(said.attached), "meta")
    for idx, called in enumerate(said.calls):
        yield from _call(called, f"{number}.{idx}")


def _call(called: DrawnCall, call_id: str) -> Iterator[Block]:
    given: dict[str, Any] = {
        name: value
        for name, value in (("path", called.path), ("command", called.command), ("pattern", called.pattern))
        if value
    }
    start = CallStart(
        call_id,
        called.name,
        _choose_known(CALL_KINDS, called.kind, "other"),
        called.path,
        called.command,
        given | called.arguments,
        called.prompt,
    )
    words = [called.title or called.name, called.command, called.pattern, called.prompt]
    yield Block("call", "\n".join(dict.fromkeys(word for word in words if word)), "tool_input", call=start)
    if called.status == "open":
        return
    failed = called.status == "error"
    error = _choose_known(ERROR_CLASSES, called.error_class, "other")
    end = CallEnd(
        call_id, failed, error, action="" if failed else _choose_known(ACTIONS, called.action, ""), path=called.path
    )
    output = "\n".join([called.output, *called.steps, *called.diagnostics]).strip("\n")
    yield Block("result", output, "tool_output", result=end)
