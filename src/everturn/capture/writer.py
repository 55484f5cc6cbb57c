"""Writes pieces into the archive: bytes, rows, index text and cursor in one transaction, or nothing. Also rebuilds rows.

Rows are derived again from the raw layer after a parser upgrade, after an interruption, or on request, in slices, each a
transaction that advances `parsed`, so that it can stop anywhere and continue later. Meanwhile `parser` is UNFINISHED.

Forgotten messages are blanked before they are stored. A fork copies whole ranges of another session, including records
that are not messages (progress, snapshots), so a forgotten message takes with it everything up to the next message that
stays. Bytes become blanks and line ends stay, so every other byte range remains valid.

Sessions that everturn made from others repeat messages: these are shown there, but indexed and counted once. How many
messages such a session began with is kept beside the records (`model.archive.Descent`), so that a rebuild marks the same
ones. When the origin is forgotten, the messages from it are deleted too, or become the session's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path

import msgspec

from everturn.capture.file_reader import UNFINISHED, FilePiece, PreparedPart, ReaderStart, empty_result, reader_for
from everturn.derive.intent import opens_session
from everturn.derive.turns import find_taken_back, grow_session, message_texts
from everturn.errors import Conflict
from everturn.model.archive import (
    HANDED_OVER,
    OFFSPRING,
    ORIGIN,
    Call,
    CensusRow,
    Descent,
    JournalTail,
    LinkRow,
    MessageRow,
    ProblemRow,
    Session,
    SessionGrowth,
    SessionText,
    SourceFile,
    Version,
    descents,
)
from everturn.model.conversation import CallStart, ReadResult, SessionFacts, SessionPart
from everturn.model.vocabulary import DOUBTS
from everturn.sources.contract import Source, SourceCandidate
from everturn.store.contract import Store

_BLANK = bytes(10 if code == 10 else 32 for code in range(256))

#: (start, is forgotten) of a message.
Mark = tuple[int, bool]


def forgotten_ranges(marks: Iterable[Mark], end: int, begun: int | None = None) -> Iterator[tuple[int, int]]:
    """Yield ranges from a forgotten message to the next that stays, or to `end`; `begun` is the start of an open one."""
    first = begun
    for start, forgotten in sorted(marks):
        if forgotten:
            first = start if first is None else first
        elif first is not None:
            yield first, start
            first = None
    if first is not None:
        yield first, end


def blank(data: bytearray, first: int, last: int) -> int:
    """Blank a range as far as it is inside the data; return the number of bytes."""
    first, last = max(first, 0), min(last, len(data))
    if first < last:
        data[first:last] = data[first:last].translate(_BLANK)
    return max(last - first, 0)


def mark_handed_over(store: Store, session: Session, growth: SessionGrowth) -> None:
    """Mark the new messages that came from another session, if that is in the archive."""
    if not growth.messages:
        return
    origin = next(iter(descents(store.kept(ORIGIN, session.native_id), session.agent)), None)
    if origin is None or growth.messages[0].seq >= origin.messages:
        return
    if not store.sessions_of(origin.agent, origin.native_id):
        return
    for message in growth.messages:
        if message.seq < origin.messages:
            message.inherited = HANDED_OVER


def find_offspring(store: Store, sessions: Sequence[Session]) -> list[Descent]:
    """Return all descendants that everturn made from these sessions, in the archive or not."""
    waiting = [(row.agent, row.native_id) for row in sessions]
    known, offspring = set(waiting), []
    while waiting:
        agent, native_id = waiting.pop()
        for child in descents(store.kept(OFFSPRING, native_id), agent):
            if (child.agent, child.native_id) not in known:
                known.add((child.agent, child.native_id))
                waiting.append((child.agent, child.native_id))
                offspring.append(child)
    return offspring


def find_made_from(store: Store, sessions: Sequence[Session]) -> list[Session]:
    """Return the archived sessions that everturn made from these."""
    return [row for one in find_offspring(store, sessions) for row in store.sessions_of(one.agent, one.native_id)]


_GROWTH = msgspec.msgpack.Decoder(SessionGrowth)
_BACKOFF = 60_000  # first wait after a failure, doubled every time
_LONGEST_WAIT = 86_400_000


@dataclass
class ArchiveWriter:
    """The context of every write. `written` counts rows, for the report."""

    store: Store
    machine: str
    owner: str
    now: int
    buried_sessions: frozenset[tuple[str, str]] = frozenset()
    buried_messages: frozenset[int] = frozenset()
    written: dict[str, int] = field(default_factory=lambda: {"sessions": 0, "turns": 0, "messages": 0, "problems": 0})
    opened: list[int] = field(default_factory=list)  # sessions that got their first message
    doubts: list[tuple[str, str]] = field(default_factory=list)  # path and reason of readings that are not sure


@dataclass(frozen=True)
class SourceOrigin:
    """The origin of rows: a version of a file of a source."""

    source: Source
    file: SourceFile
    version: Version


def write_piece(writer: ArchiveWriter, piece: FilePiece) -> None:
    """Inside a write transaction: add the bytes and rows of a piece and move the cursor."""
    store, start = writer.store, piece.start
    if start.reason:
        _open_version(writer, start)
    version, known = start.version, start.candidate.known
    assert known is not None
    stored, reading, changes = piece.stored, piece.reading, dict(piece.changes)
    if writer.buried_messages or writer.buried_sessions:
        stored, blanked = _blank_buried(writer, piece)
        changes["erased"] = version.erased + blanked
        start.blanked = start.blanked or blanked > 0
    if start.blanked:  # rows are derived later, from the stored bytes
        reading, changes["parser"] = empty_result(), 0
    store.move_cursor(version.id, piece.offset, changed_at=writer.now, **changes)
    if piece.prepared is not None:
        store.append_packed(version.id, piece.at, piece.prepared.chunks)
    elif start.mode in ("full", "redacted") and stored:
        store.append_raw(version.id, piece.at, stored)
    parts = piece.prepared.parts if piece.prepared is not None else reading.parts
    write_reading(writer, SourceOrigin(start.candidate.source, known, version), reading, parts)
    for name, value in changes.items():
        setattr(version, name, value)
    _note_outcome(writer, piece, known)
    start.pieces_written += 1


def _note_outcome(writer: ArchiveWriter, piece: FilePiece, known: SourceFile) -> None:
    """Put a file whose reader failed into quarantine, and let one that was read to its end out of it."""
    if piece.failed:
        note_failure(writer, known, piece.failed)
    elif piece.last and piece.start.version.parser != -1 and (known.fail_reason or known.state != "live"):
        writer.store.set_file(known.id, fail_reason="", fail_count=0, retry_at=0, state="live")


def write_reading(
    writer: ArchiveWriter, origin: SourceOrigin, reading: ReadResult, parts: Sequence[SessionPart | PreparedPart]
) -> None:
    """Inside a write transaction: add the rows of a reading, of a sync or a rebuild."""
    version = origin.version.id
    writer.store.clear_provisional(version)
    for part in parts:
        _write_part(writer, origin, part)
    if reading.problems:
        rows = [ProblemRow(version, p.start, p.size, p.kind, p.reason, int(p.provisional)) for p in reading.problems]
        writer.store.add_problems(rows)
        doubts = [p for p in reading.problems if p.kind in DOUBTS]
        writer.doubts += [(origin.file.path, p.reason) for p in doubts]
        writer.written["problems"] += sum(not p.provisional for p in reading.problems) - len(doubts)
    if reading.census:
        writer.store.add_census([CensusRow(version, c.type, c.client, c.disposition, c.n) for c in reading.census])
    if reading.lines or reading.glued:
        origin.version.lines += reading.lines
        origin.version.glued += reading.glued
        writer.store.set_version(version, lines=origin.version.lines, glued=origin.version.glued)


def note_failure(writer: ArchiveWriter, file: SourceFile, reason: str) -> None:
    """Put a file into quarantine until its next retry; the wait doubles every time."""
    file.fail_count, file.fail_reason = file.fail_count + 1, reason
    file.retry_at = writer.now + min(_BACKOFF << min(file.fail_count - 1, 16), _LONGEST_WAIT)
    writer.store.set_file(file.id, fail_reason=reason, fail_count=file.fail_count, retry_at=file.retry_at)


def is_buried(writer: ArchiveWriter, agent: str, reading: ReadResult) -> bool:
    """Whether a reading has nothing but forgotten sessions."""
    return bool(reading.parts) and all(_is_buried_part(writer, agent, part) for part in reading.parts)


def _is_buried_part(writer: ArchiveWriter, agent: str, part: SessionPart) -> bool:
    return not {(agent, part.native_id), (agent, part.facts.parent)}.isdisjoint(writer.buried_sessions)


def workspace_key(workspace: str) -> str:
    """Return a short hash of a workspace path, which does not reveal it."""
    return blake2b(workspace.encode("utf-8", "replace"), digest_size=6).hexdigest() if workspace else ""


def _open_version(writer: ArchiveWriter, start: ReaderStart) -> None:
    """Insert the rows of the file and of the version that starts here."""
    store, candidate, version = writer.store, start.candidate, start.version
    found = candidate.found
    row = store.file(writer.machine, candidate.path)
    if _version_cursor(row[1] if row else None) != _version_cursor(candidate.version):
        raise Conflict(candidate.path)
    known = row[0] if row is not None else None
    if known is None:
        known = SourceFile(
            0, candidate.source.name, writer.machine, writer.owner, candidate.path, found.kind, found.native_id,
            found.parent, start.mode, container=candidate.container,
        )  # fmt: skip
        known.id = store.add_file(known)
    elif known.mode != start.mode:
        store.set_file(known.id, mode=start.mode)
    candidate.known = known
    version.source, version.reason, version.opened_at, version.mode = known.id, start.reason, writer.now, start.mode
    version.id = store.add_version(version)
    if start.shared and store.share_raw(start.old_version, version.id, start.shared) != start.shared:
        raise Conflict(candidate.path)
    start.reason = ""


def _version_cursor(version: Version | None) -> tuple[int, int]:
    """Return the cursor, to detect that another process has moved it."""
    return (version.id, version.offset) if version is not None else (0, 0)


def grow_part(
    source: Source,
    part: SessionPart,
    tail: JournalTail,
    start_of: Callable[[Call], CallStart | None],
    mode: str = "full",
) -> tuple[SessionGrowth, JournalTail]:
    """Return the rows that a part adds to a session at `tail`, and its new tail."""
    growth, tail = grow_session(tail, part.messages, start_of)
    growth.links = [LinkRow(0, link.relation, link.native_id, link.call_id, link.hint) for link in part.links]
    if source.keeps_words and mode != "structure":
        growth.words = list(message_texts(growth, part.messages))
    return growth, tail


def _write_part(writer: ArchiveWriter, origin: SourceOrigin, part: SessionPart | PreparedPart) -> None:
    store, facts = writer.store, part.facts
    file = origin.file
    session = store.open_session(
        Session(
            0, origin.source.name, part.native_id, origin.version.id, facts.kind or "main", facts.parent, origin.version.mode,
            machine=file.machine, owner=file.owner, client=facts.client,
        )
    )  # fmt: skip
    growth: SessionGrowth
    if isinstance(part, PreparedPart):
        growth = _GROWTH.decode(part.growth)
    else:
        start_of = partial(_call_start, store, origin, session.id)
        growth, _ = grow_part(origin.source, part, store.tail(session.id), start_of, origin.version.mode)
    if session.n_messages == 0:
        writer.written["sessions"] += 1
        writer.opened.append(session.id)
    writer.written["messages"] += len(growth.messages)
    writer.written["turns"] += sum(turn.first_seq >= session.n_messages for turn in growth.turns)
    first_prompt = growth.first_prompt
    mark_handed_over(store, session, growth)
    if growth.takes_back:
        rows = chain(store.messages(session.id), growth.messages)
        growth.taken_back = find_taken_back(growth.takes_back, rows, partial(_native_id, store, origin))
    if origin.version.mode == "structure":
        growth = msgspec.structs.replace(growth, artifacts=[], index=[], edits=[], first_prompt="")
    store.append(session.id, growth)
    _write_facts(store, session, facts, first_prompt, origin.version.mode)


def _write_facts(store: Store, session: Session, facts: SessionFacts, first_prompt: str, mode: str) -> None:
    changes: dict[str, str] = {}
    if facts.client and facts.client != session.client:
        changes["client"] = facts.client
    if facts.workspace and not session.workspace_key:
        changes["workspace_key"] = workspace_key(facts.workspace)
    if facts.parent and facts.parent != session.parent:
        changes["parent"] = facts.parent
    if changes:
        store.set_session(session.id, **changes)
    if mode == "structure":
        return
    text = store.session(session.id)[1]
    merged = _merge_facts(text, facts, first_prompt)
    if merged != text or session.n_messages == 0:
        store.set_text(merged)


def _merge_facts(text: SessionText, facts: SessionFacts, first_prompt: str) -> SessionText:
    """Merge facts: the first workspace, the last branch, and the last title of the highest rank."""
    better = facts.title and facts.title_rank >= text.title_rank
    return SessionText(
        text.session, facts.title if better else text.title, facts.title_rank if better else text.title_rank,
        facts.summary or text.summary, text.workspace or facts.workspace, facts.branch or text.branch,
        _asked_first(text.first_prompt, first_prompt), facts.team or text.team, facts.agent_name or text.agent_name,
        facts.slug or text.slug,
    )  # fmt: skip


def _asked_first(known: str, new: str) -> str:
    """Return what was asked for first: a greeting gives way to it."""
    return new if new and (not known or (opens_session(new) and not opens_session(known))) else known


def _call_start(store: Store, origin: SourceOrigin, session: int, call: Call) -> CallStart | None:
    """Read the start of a call of an earlier piece from the raw layer."""
    if origin.version.mode == "structure":
        return None
    for row in store.messages(session, call.seq, call.seq):
        message = origin.source.view(store.read_raw(origin.version.id, row.start, row.size))
        if message is not None and call.idx < len(message.blocks):
            return message.blocks[call.idx].call
    return None


def _native_id(store: Store, origin: SourceOrigin, row: MessageRow) -> str:
    """Read the native id of a message from the raw layer."""
    if origin.version.mode == "structure":
        return ""
    message = origin.source.view(store.read_raw(origin.version.id, row.start, row.size))
    return message.native_id if message is not None else ""


def _blank_buried(writer: ArchiveWriter, piece: FilePiece) -> tuple[bytes, int]:
    """Return the bytes with forgotten messages blanked (same length), and the number of blanked bytes."""
    agent, buried = piece.start.candidate.source.name, writer.buried_messages
    marks = [
        (message.start - piece.at, message.fingerprint in buried or _is_buried_part(writer, agent, part))
        for part in piece.reading.parts
        for message in part.messages
    ]
    stored, begun = bytearray(piece.stored), 0 if piece.start.in_forgotten else None
    gone = list(forgotten_ranges(marks, len(stored), begun))
    piece.start.in_forgotten = bool(gone) and gone[-1][1] == len(stored)
    blanked = sum(blank(stored, first, last) for first, last in gone)  # changes `stored`
    return bytes(stored), blanked


SLICE = 4 << 20


def rebuild_archive(
    writer: ArchiveWriter, sources: Mapping[str, Source], progress: Callable[[int, int, str], None]
) -> int:
    """Derive the rows of every version with bytes again; return the number of versions."""
    todo = []
    for file, _ in writer.store.files():
        if (source := sources.get(file.format)) is not None:
            todo += [(source, file, version) for version in writer.store.versions(file.id) if has_bytes(version)]
    todo.sort(key=lambda item: item[2].id)
    with writer.store.write():
        writer.store.set_setting("parsers", "")  # if interrupted, the next sync checks every version
    for _, _, version in reversed(todo):  # newest first, so that few messages change their owner on the way
        with writer.store.write():
            _start_over(writer, version)
    for number, (source, file, version) in enumerate(todo):
        progress(number, len(todo), file.path)
        derive_version(writer, source, file, version)
    upgrade_derived(writer, sources, [], progress)
    return len(todo)


def upgrade_derived(
    writer: ArchiveWriter,
    sources: Mapping[str, Source],
    behind: list[tuple[SourceFile, Version]],
    progress: Callable[[int, int, str], None],
) -> int:
    """Derive rows again: of files that are gone and, once after a parser changed, of all older versions."""
    parsers = ",".join(f"{name}={source.parser}" for name, source in sorted(sources.items()))
    todo = list(behind)
    if writer.store.setting("parsers") != parsers:
        changed = [(file, current.id) for file, current in writer.store.files() if current.number > 1]
        todo += [(file, one) for file, newest in changed for one in writer.store.versions(file.id) if one.id != newest]
    done = 0
    for number, (file, version) in enumerate(todo):
        progress(number, len(todo), file.path)
        done += file.format in sources and derive_pending(writer, sources[file.format], file, version)
    if writer.store.setting("parsers") != parsers:
        with writer.store.write():
            writer.store.set_setting("parsers", parsers)
    return done


def derive_pending(writer: ArchiveWriter, source: Source, file: SourceFile, version: Version) -> bool:
    """Derive the rows of a version if its parser is old or the last attempt failed; return whether that was needed."""
    is_waiting = version.parser == -1 and file.retry_at > writer.now
    if version.parser == source.parser or not has_bytes(version) or is_waiting:
        return False
    if version.parser != UNFINISHED:
        with writer.store.write():
            _start_over(writer, version)
    derive_version(writer, source, file, version)
    return True


def derive_version(writer: ArchiveWriter, source: Source, file: SourceFile, version: Version) -> None:
    """Derive rows from `version.parsed` to the end of the stored bytes."""
    store = writer.store
    reader = reader_for(source, SourceCandidate(Path(file.path), file.kind, file.native_id, file.parent), version.state)
    origin = SourceOrigin(source, file, version)
    unread, read_to = b"", version.parsed
    while True:
        data = unread + store.read_raw(version.id, read_to, min(SLICE, version.size - read_to))
        read_to += len(data) - len(unread)
        last = read_to >= version.size
        try:
            reading = reader.feed(data, version.parsed, last)
        except Exception as failure:
            _mark_unparseable(
                writer, file, version, f"the reader failed with {type(failure).__name__} after byte {version.parsed}"
            )
            return
        unread = data[reading.consumed :]
        with store.write():
            parsed, parser = version.parsed + reading.consumed, source.parser if last else UNFINISHED
            state = reader.state()
            store.set_version(version.id, parsed=parsed, parser=parser, state=state)
            write_reading(writer, origin, reading, reading.parts)
            if last and file.fail_reason:
                store.set_file(file.id, fail_reason="", fail_count=0, retry_at=0)
        version.parsed, version.parser, version.state = parsed, parser, state
        if last:
            return


def has_bytes(version: Version) -> bool:
    """Whether a version has raw bytes to derive from."""
    return version.id != 0 and version.mode in ("full", "redacted")


def _start_over(writer: ArchiveWriter, version: Version) -> None:
    writer.store.drop_derived(version.id)
    version.parsed, version.parser, version.state, version.lines, version.glued = 0, UNFINISHED, b"", 0, 0
    writer.store.set_version(version.id, parsed=0, parser=UNFINISHED, state=b"", lines=0, glued=0)


def _mark_unparseable(writer: ArchiveWriter, file: SourceFile, version: Version, reason: str) -> None:
    version.parser = -1
    with writer.store.write():
        writer.store.set_version(version.id, parser=-1)
        note_failure(writer, file, reason)
