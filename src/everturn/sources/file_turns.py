"""Turns of a file, without an archive: `read_turns("session.jsonl")`, public as `everturn.read`.

The format is recognised by content, as in `everturn add`. What is returned is what the archive would derive: the same turns,
calls, pairs and batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from everturn.derive.turns import grow_session
from everturn.errors import MissingPath, NothingFound, Unreadable, UsageError
from everturn.model.archive import Call, JournalTail, Turn
from everturn.model.conversation import Message
from everturn.sources.contract import PartlyUnread, Source, SourceCandidate, all_sources, read_beginning
from everturn.sources.recognition import describe_tie, tied, weigh_claims, winner
from everturn.sources.toolkit.sqlite_file import is_sqlite, snapshot
from everturn.text.times import turn_ms


class FileCall(Struct, frozen=True):
    """One tool call of a turn, with its result."""

    call_id: str
    name: str
    kind: str  # of `model.vocabulary.CALL_KINDS`
    input: Any  # as the model wrote it
    output: str
    status: str  # ok | error | open
    error_class: str  # "" unless it failed
    started_at: int | None  # milliseconds, UTC
    duration_ms: int | None
    batch: int  # number of the batch in the turn; parallel calls share it


class FileTurn(Struct, frozen=True):
    """One request and everything that followed until the next."""

    session_id: str
    index: int  # within its session, from 0
    started_at: int | None
    duration_ms: int | None
    prompt: str
    answer: str
    calls: list[FileCall]
    tokens_in: int
    tokens_out: int
    was_compacted: bool
    was_interrupted: bool


def read_turns(path: str | Path, source: str = "") -> list[FileTurn]:
    """Return the turns of every session in a transcript, in order, with their calls.

    `source` names the format if the content does not settle it. A database or an archive of several sessions is read too.
    Raises MissingPath, NothingFound if no format is recognised, UsageError if several are, Unreadable.
    """
    place = Path(path)
    if not place.exists():
        raise MissingPath(str(place))
    chosen, found = _recognise(place, source)
    try:
        return [turn for messages in _sessions(chosen, found) for turn in _turns(*messages)]
    except OSError as failure:
        raise Unreadable(str(place), failure.strerror or "cannot be read") from failure


def _recognise(path: Path, name: str) -> tuple[Source, SourceCandidate]:
    sources = all_sources()
    if name and name not in sources:
        raise UsageError(f"there is no format {name!r}; `everturn sources` lists them")
    asked = [sources[name]] if name else list(sources.values())
    claims = weigh_claims(asked, path, read_beginning(path))
    if tied(claims):
        raise UsageError(f"{path} {describe_tie(claims).replace('--as NAME', 'source=NAME')}")
    best = winner(claims)
    if best is None:
        raise NothingFound(f"{path} is no transcript of a known format; `everturn sources explain` says why")
    return best.source, best.found


def _sessions(source: Source, found: SourceCandidate) -> Iterator[tuple[str, list[Message]]]:
    """Yield the sessions of a file with their messages, in order."""
    if source.unpack is None or found.kind not in ("container", "bundle"):
        yield from _read(source, found, found.path.read_bytes())
        return
    with TemporaryDirectory(prefix="everturn-") as folder:
        path = found.path
        if source.is_database and found.kind == "container" and is_sqlite(read_beginning(path)):
            path = Path(folder) / "copy.db"
            snapshot(found.path, path, source.private)
        with suppress(PartlyUnread):
            for member in source.unpack(found, path):
                place = Path(f"{found.path}#{member.name}")
                inside = SourceCandidate(place, member.kind, member.native_id, member.parent)
                yield from _read(source, inside, b"".join(member.lines))


def _read(source: Source, found: SourceCandidate, data: bytes) -> Iterator[tuple[str, list[Message]]]:
    reading = source.reader(found, b"").feed(data, 0, True)
    for part in reading.parts:
        if part.messages:
            yield part.native_id, part.messages


def _turns(session: str, messages: list[Message]) -> Iterator[FileTurn]:
    growth, _ = grow_session(JournalTail(), messages)
    outputs = {
        (seq, block.result.call_id): block.text
        for seq, message in enumerate(messages)
        for block in message.blocks
        if block.result is not None
    }
    for turn in growth.turns:
        calls = [call for call in growth.calls if call.turn == turn.idx and call.status != "orphan"]
        steps = [step for step in growth.steps if step.turn == turn.idx]
        yield FileTurn(
            session, turn.idx, turn.started, turn_ms(turn), _words(messages, turn, "prompt"),
            _words(messages, turn, "answer"), [_call(call, messages, outputs) for call in calls],
            sum(step.tokens_in + step.tokens_cache_read + step.tokens_cache_write for step in steps),
            sum(step.tokens_out for step in steps), bool(turn.compacted), bool(turn.interrupted),
        )  # fmt: skip


def _words(messages: list[Message], turn: Turn, field: str) -> str:
    said = messages[turn.first_seq : turn.last_seq + 1]
    return "\n\n".join(block.text for one in said for block in one.blocks if block.field == field and block.text)


def _call(call: Call, messages: list[Message], outputs: Mapping[tuple[int, str], str]) -> FileCall:
    start = messages[call.seq].blocks[call.idx].call
    output = outputs.get((call.result_seq, call.call_id), "") if call.result_seq is not None else ""
    return FileCall(
        call.call_id, call.name, call.kind, start.input if start is not None else None, output, call.status,
        call.error_class, call.started, call.duration_ms, call.position,
    )  # fmt: skip
