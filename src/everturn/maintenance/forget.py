"""Erases sessions and messages for good: bytes, rows, index, vectors, and everything that was made from them.

Made from a session are copies of its messages in forks and handed-over sessions; and in a session that continues it the
prompt it began with, injected states, summaries, and what it inherited. What a framework keeps under the session's name
goes too. Tombstones keep what was erased from returning with the next sync.

An erasure is recorded before anything is deleted (`Erasure`), in the same transaction as its tombstones, and the record is
deleted when nothing is left to do. `finish_erasures` completes what a killed process, or a reader that held the log, has
left: every step may be repeated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from everturn.capture.file_reader import UNFINISHED
from everturn.capture.writer import (
    ArchiveWriter,
    Mark,
    blank,
    derive_pending,
    find_made_from,
    find_offspring,
    forgotten_ranges,
    has_bytes,
)
from everturn.clock import new_id
from everturn.model.archive import (
    FRAMEWORK,
    HANDED_OVER,
    ORIGIN,
    FrameworkData,
    KeptRow,
    MessageRow,
    Session,
    Tombstone,
)
from everturn.model.conversation import prepared
from everturn.model.vocabulary import BACKUP
from everturn.sessions.state import INHERITED, PIN
from everturn.sources.contract import Source
from everturn.store.contract import Store

if TYPE_CHECKING:  # most have none
    from everturn.store.vector_file import VectorFile

#: Kinds of kept rows that summarise a session.
_SUMMARY_KINDS = ("summary", "turn_summary", "synthesis")
#: And those that hold the state of a conversation.
_DERIVED_KINDS = (*_SUMMARY_KINDS, "chat", INHERITED)


@dataclass
class ForgetReport:
    sessions: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    still_there: list[str] = field(default_factory=list)  # source files that still exist on disk
    forked_messages: int = 0
    kept_in: list[str] = field(default_factory=list)  # sessions with the same messages that stay
    names: list[str] = field(default_factory=list)  # sessions that files beside the archive may be named after


def plan_forget(store: Store, session: Session) -> list[Session]:
    """Return what forgetting a session erases: the session in every version, its subagents and outputs."""
    doomed: dict[int, Session] = {}
    waiting = list(store.sessions_of(session.agent, session.native_id))
    while waiting:
        one = waiting.pop()
        if one.id in doomed:
            continue
        doomed[one.id] = one
        waiting += [other for other in store.sessions_in(one.version) if _is_attached(other, one)]
        for link in store.links_to(one.native_id):
            if link.relation in ("subagent_of", "output_of", "about"):
                waiting.append(store.session(link.session)[0])
    return sorted(doomed.values(), key=lambda row: row.id)


def names_beside(store: Store, doomed: Sequence[Session], keep_forks: bool) -> list[str]:
    """Return the sessions that files beside the archive may be named after, if those of a plan are erased."""
    names = {row.native_id for row in doomed}
    names |= set() if keep_forks else {one.native_id for one in find_offspring(store, list(doomed))}
    return sorted(names)


def _is_attached(other: Session, one: Session) -> bool:
    return other.parent == one.native_id or other.native_id.startswith(f"{one.native_id}/")


class Erasure(Struct, frozen=True):
    """An erasure that is under way. It holds names and numbers, and no content."""

    id: str
    at: int
    sessions: tuple[tuple[str, str], ...] = ()  # (agent, native id)
    keep_forks: bool = False
    vectors: tuple[int, ...] = ()  # sessions whose vectors must go
    names: tuple[str, ...] = ()  # sessions that files beside the archive may be named after


ERASURE = "erasure"


def pending_erasures(store: Store) -> list[Erasure]:
    """Return the erasures that are not complete."""
    return [msgspec.json.decode(row.value, type=prepared(Erasure)) for row in store.kept(ERASURE)]


def forget_sessions(
    writer: ArchiveWriter,
    sources: Mapping[str, Source],
    sessions: Sequence[Session],
    keep_forks: bool = False,
    vectors: VectorFile | None = None,
) -> ForgetReport:
    """Erase sessions and their vectors for good. Raises Busy if a reader holds the log: then the rest is done later."""
    store = writer.store
    doomed = list({row.id: row for one in sessions for row in plan_forget(store, one)}.values())
    names = names_beside(store, doomed, keep_forks)
    erased = tuple((row.agent, row.native_id) for row in doomed)
    erasure = Erasure(new_id(), writer.now, erased, keep_forks, names=tuple(names))
    with store.write():
        store.bury([Tombstone("session", row.agent, row.native_id, writer.now) for row in doomed])
        _keep_erasure(store, erasure)
    return run_erasure(writer, sources, erasure, vectors)


def run_erasure(
    writer: ArchiveWriter, sources: Mapping[str, Source], erasure: Erasure, vectors: VectorFile | None = None
) -> ForgetReport:
    """Carry out an erasure, or what is left of it."""
    store, report = writer.store, ForgetReport(sorted({name for _, name in erasure.sessions}))
    report.names = list(erasure.names)
    doomed = [row for agent, name in dict.fromkeys(erasure.sessions) for row in store.sessions_of(agent, name)]
    if doomed:
        made = find_made_from(store, doomed)
        forks = _fork_sessions(store, [*doomed, *made]) + made
        heirs = [] if erasure.keep_forks else _heirs(store, [*doomed, *forks])
        affected = _affected_sessions(store, doomed, [*forks, *heirs])
        _erase_vectors(vectors, affected)  # first: after an interruption there are rather too few than too many
        erasure = msgspec.structs.replace(erasure, vectors=tuple(sorted({*erasure.vectors, *affected})))
        with store.write():
            _keep_erasure(store, erasure)
            if erasure.keep_forks:
                report.kept_in = [fork.native_id for fork in forks]
            else:
                report.forked_messages = _erase_in_forks(store, doomed, forks, writer.now)
                _erase_in_heirs(store, doomed, heirs)
            _detach_from_origin(store, made)
            for fork in forks:  # their rows may quote forgotten messages, and they own more messages now
                store.set_version(fork.version, parser=0)
            _erase_files(store, doomed, report)
            _erase_kept(store, doomed, [] if erasure.keep_forks else forks)
    _complete_erasure(writer, sources, erasure, vectors)
    return report


def finish_erasures(
    writer: ArchiveWriter, sources: Mapping[str, Source], vectors: VectorFile | None = None
) -> list[Erasure]:
    """Complete all pending erasures; return them. Raises Busy while a reader holds the log."""
    pending = pending_erasures(writer.store)
    for erasure in pending:
        run_erasure(writer, sources, erasure, vectors)
    return pending


def _keep_erasure(store: Store, erasure: Erasure) -> None:
    store.keep(KeptRow(ERASURE, "", erasure.id, "", msgspec.json.encode(erasure).decode(), erasure.at))


def _complete_erasure(
    writer: ArchiveWriter, sources: Mapping[str, Source], erasure: Erasure, vectors: VectorFile | None
) -> None:
    """Derive the rows of blanked versions again, and remove deleted bytes from the files of the archive."""
    store = writer.store
    for file, _ in store.files():
        for version in store.versions(file.id) if file.format in sources else ():
            if version.parser in (0, UNFINISHED):
                derive_pending(writer, sources[file.format], file, version)
    store.scrub()
    _erase_vectors(vectors, set(erasure.vectors))  # another process may have computed some meanwhile
    with store.write():
        store.drop_kept("", erasure.id, (ERASURE,))


# --- single messages ---
def forget_messages(
    writer: ArchiveWriter,
    sources: Mapping[str, Source],
    rows: Iterable[MessageRow],
    pattern: re.Pattern[bytes] | None = None,
    vectors: VectorFile | None = None,
) -> ForgetReport:
    """Erase messages with all their copies; with a pattern, also every other record and kept row that matches it."""
    store, report = writer.store, ForgetReport()
    rows = list(rows)
    marks = {row.fingerprint for row in rows} - {None}
    chosen = {(row.session, row.seq) for row in rows}
    sessions = {row.session: store.session(row.session)[0] for row in rows}
    near = _copies_of(store, list(sessions.values()))
    heirs = _heirs(store, list(near.values()))
    with store.write():
        numbers = {one.version for one in near.values()}
        numbers |= set(_versions_with_bytes(store)) if pattern is not None else set()
        for number in sorted(numbers):
            report.forked_messages += _erase_in_version(store, number, chosen, marks, pattern)
        _erase_in_heirs(store, list(sessions.values()), heirs)
        for one in near.values():
            store.drop_kept(one.agent, one.native_id, _DERIVED_KINDS)
        if pattern is not None:
            _erase_matching_rows(store, pattern)
        agents = {one.agent for one in near.values()}
        store.bury([Tombstone("message", agent, str(mark), writer.now) for agent in agents for mark in sorted(marks)])  # type: ignore[type-var]
        affected = {one.id for number in numbers for one in store.sessions_in(number)} | {one.id for one in heirs}
        erasure = Erasure(new_id(), writer.now, vectors=tuple(sorted(affected)))
        _keep_erasure(store, erasure)
    _erase_vectors(vectors, affected)
    report.sessions = sorted(one.native_id for one in sessions.values())
    _complete_erasure(writer, sources, erasure, vectors)
    return report


def text_pattern(text: str) -> re.Pattern[bytes]:
    """Return the pattern of a text as it stands in records: plain, or escaped as JSON, in any case of letters."""
    forms = {text.encode("utf-8", "surrogatepass"), json.dumps(text)[1:-1].encode(), msgspec.json.encode(text)[1:-1]}
    return re.compile(b"|".join(map(re.escape, sorted(forms))), re.IGNORECASE)


def find_matching(store: Store, pattern: re.Pattern[bytes]) -> list[MessageRow]:
    """Return the messages whose record matches."""
    found = []
    for number in _versions_with_bytes(store):
        size = store.version(number).size
        if not pattern.search(store.read_raw(number, 0, size)):
            continue
        for one in store.sessions_in(number):
            rows = store.messages(one.id)
            found += [row for row in rows if pattern.search(store.read_raw(number, row.start, row.size))]
    return found


def _versions_with_bytes(store: Store) -> list[int]:
    return [version.id for file, _ in store.files() for version in store.versions(file.id) if has_bytes(version)]


def _copies_of(store: Store, sessions: list[Session]) -> dict[int, Session]:
    """Return the sessions in every version, with those that may hold copies of their messages."""
    found = {row.id: row for one in sessions for row in store.sessions_of(one.agent, one.native_id)}
    elders = [
        row
        for one in list(found.values())
        for link in store.links(one.id)
        if link.relation == "forked_from"
        for row in store.sessions_of(one.agent, link.native_id)
    ]
    found |= {row.id: row for row in elders}
    made = find_made_from(store, list(found.values()))
    found |= {row.id: row for row in (*made, *_fork_sessions(store, [*found.values(), *made]))}
    return found


def _erase_in_version(
    store: Store, number: int, chosen: set[tuple[int, int]], marks: set[int | None], pattern: re.Pattern[bytes] | None
) -> int:
    """Blank the chosen messages of a version, and what matches the pattern; return the number of messages."""
    rows = [row for one in store.sessions_in(number) for row in store.messages(one.id)]
    first = min((row.seq for row in rows if (row.session, row.seq) in chosen), default=None)
    gone = [
        (row.session, row.seq) in chosen
        or row.fingerprint in marks
        or (first is not None and row.seq > first and row.origin == "injected")
        for row in rows
    ]
    more: list[tuple[int, int]] = []
    if pattern is not None:
        data = store.read_raw(number, 0, store.version(number).size)
        more = [_range_around(data, rows, match) for match in pattern.finditer(data)]
    if any(gone) or more:
        _blank_version(store, number, [(row.start, is_gone) for row, is_gone in zip(rows, gone, strict=True)], more)
    return sum(gone)


def _range_around(data: bytes, rows: list[MessageRow], match: re.Match[bytes]) -> tuple[int, int]:
    """Return the message that a match is in; outside of messages its line, or itself in a file of one line."""
    inside = next((row for row in rows if row.start <= match.start() < row.start + row.size), None)
    if inside is not None:
        return inside.start, inside.start + inside.size
    start, end = data.rfind(b"\n", 0, match.start()) + 1, data.find(b"\n", match.end())
    return (start, end if end >= 0 else len(data)) if b"\n" in data else match.span()


def _erase_matching_rows(store: Store, pattern: re.Pattern[bytes]) -> None:
    """Delete the kept rows, lists and checkpoints of frameworks that match."""
    for row in store.kept():
        if row.kind != ERASURE and pattern.search(row.value.encode("utf-8", "replace")):
            store.drop_kept(row.agent, row.subject, (row.kind,))
    store.drop_list_items(lambda data: bool(pattern.search(data)))
    store.drop_threads(lambda data: bool(pattern.search(data)))


# --- what was made from a session ---
def _heirs(store: Store, sessions: Sequence[Session]) -> list[Session]:
    """Return the sessions that continue these, and those that continue them."""
    known = {row.id for row in sessions}
    heirs, waiting = [], list(sessions)
    while waiting:
        for link in store.links_to(waiting.pop().native_id):
            if link.relation == "continues" and link.session not in known:
                known.add(link.session)
                heirs.append(store.session(link.session)[0])
                waiting.append(heirs[-1])
    return heirs


def _erase_in_heirs(store: Store, doomed: Sequence[Session], heirs: Sequence[Session]) -> None:
    """Blank what heirs were told about the sessions they continue, and delete what was kept of it."""
    lost = {row.native_id for row in doomed}
    ids = {row.id for row in heirs}
    for number in sorted({row.version for row in heirs}):
        marks: list[Mark] = []
        for one in store.sessions_in(number):
            rows = list(store.messages(one.id))
            prompt = next((row.seq for row in rows if row.origin == "human"), len(rows))
            marks += [(row.start, one.id in ids and (row.origin == "injected" or row.seq < prompt)) for row in rows]
        _blank_version(store, number, marks)
    for row in heirs:
        pins = store.kept(PIN, row.native_id)
        store.drop_kept(row.agent, row.native_id, (*_DERIVED_KINDS, PIN))
        for pin in pins:
            if not any(name in pin.value for name in lost):
                store.keep(pin)


def _affected_sessions(store: Store, doomed: list[Session], forks: list[Session]) -> set[int]:
    """Return the sessions that are erased, lose or gain messages: their vectors are computed again."""
    versions = {row.version for row in (*doomed, *forks)}
    return {row.id for row in doomed} | {one.id for version in versions for one in store.sessions_in(version)}


def _erase_vectors(vectors: VectorFile | None, sessions: set[int]) -> None:
    if vectors is not None:
        for number in sorted(sessions):
            vectors.forget(number)


def _erase_kept(store: Store, doomed: list[Session], forks: list[Session]) -> None:
    """Delete kept rows about forgotten sessions, and summaries of forks that held the same messages."""
    store.drop_hook_events([row.native_id for row in doomed])
    _erase_framework_data(store, {row.native_id for row in doomed})
    for row in doomed:
        store.drop_kept(row.agent, row.native_id)
        store.drop_lists(row.native_id)
        store.delete_thread(row.native_id)
    for fork in forks:
        store.drop_kept(fork.agent, fork.native_id, _SUMMARY_KINDS)


def _erase_framework_data(store: Store, doomed: set[str]) -> None:
    """Delete what a framework keeps behind forgotten sessions, unless another session refers to it too."""
    rows = store.kept(FRAMEWORK)
    kept = {row.value for row in rows if row.subject not in doomed}
    for value in {row.value for row in rows if row.subject in doomed} - kept:
        store.erase_framework_data(msgspec.json.decode(value, type=prepared(FrameworkData)))


def _erase_files(store: Store, doomed: list[Session], report: ForgetReport) -> None:
    """Delete files of forgotten sessions, and blank their messages in shared files."""
    ids = {row.id for row in doomed}
    sources = {row.version: store.version(row.version).source for row in doomed}
    shared = {
        source
        for version, source in sources.items()
        if any(one.n_messages and one.id not in ids for one in store.sessions_in(version))
    }
    files = {store.version(row.version).source for row in doomed}
    files |= {file.id for row in doomed for file, _ in store.files_of(row.agent, row.native_id, BACKUP)}
    for source in sorted(files | {store.file_by_id(file)[0].container for file in files} - {0}):
        report.files.append(store.file_by_id(source)[0].path)
        if source not in shared:
            store.delete_file(source)
    for version in sorted(version for version, source in sources.items() if source in shared):
        marks = [(row.start, one.id in ids) for one in store.sessions_in(version) for row in store.messages(one.id)]
        _blank_version(store, version, marks)


def _fork_sessions(store: Store, doomed: list[Session]) -> list[Session]:
    ids = {row.id for row in doomed}
    links = [link for row in doomed for link in store.links_to(row.native_id) if link.relation == "forked_from"]
    forks = {link.session for link in links} - ids
    return [store.session(fork)[0] for fork in sorted(forks)]


def _detach_from_origin(store: Store, made: list[Session]) -> None:
    """Let sessions that were made from forgotten ones own what is left of them."""
    for row in made:
        store.drop_kept(row.agent, row.native_id, (ORIGIN,))
        store.set_version(row.version, parser=0)


def _erase_in_forks(store: Store, doomed: list[Session], forks: list[Session], now: int) -> int:
    marks = {row.fingerprint for one in doomed for row in store.messages(one.id)} - {None}
    handed = [row for one in forks for row in store.messages(one.id) if row.inherited == HANDED_OVER]
    handed_keys = {(row.session, row.seq) for row in handed}
    marks |= {row.fingerprint for row in handed} - {None}
    erased: set[int] = set()
    n_erased = 0
    for version in sorted({fork.version for fork in forks}):
        rows = [row for one in store.sessions_in(version) for row in store.messages(one.id)]
        copies = {row.fingerprint for row in rows if row.inherited and row.fingerprint in marks}
        gone = [row.fingerprint in copies or (row.session, row.seq) in handed_keys for row in rows]
        gone = _with_copied_records(rows, gone)
        marks_here = [(row.start, is_gone) for row, is_gone in zip(rows, gone, strict=True)]
        _blank_version(store, version, marks_here, _title_ranges(store, version, forks) if handed_keys else ())
        erased |= {mark for mark in copies if mark is not None}
        n_erased += sum(gone)
    store.bury([Tombstone("message", doomed[0].agent, str(mark), now) for mark in sorted(erased)])
    return n_erased


def _with_copied_records(rows: list[MessageRow], gone: list[bool]) -> list[bool]:
    """Add the summaries and notices that were copied with messages: those before the first message of the fork's own."""
    own = [row.start for row, is_gone in zip(rows, gone, strict=True) if not is_gone and row.origin != "system"]
    first = min(own, default=None) if any(gone) else 0
    return [is_gone or first is None or row.start < first for row, is_gone in zip(rows, gone, strict=True)]


def _title_ranges(store: Store, number: int, forks: list[Session]) -> list[tuple[int, int]]:
    """Return the byte ranges of titles that sessions were created with: the first words of their origin."""
    texts = [store.session(fork.id)[1].title for fork in forks if fork.version == number]
    data = store.read_raw(number, 0, store.version(number).size)
    titles = {msgspec.json.encode(text)[1:-1] for text in texts if text}
    return [match.span() for title in titles for match in re.finditer(re.escape(title), data)]


def _blank_version(store: Store, number: int, marks: list[Mark], more: Iterable[tuple[int, int]] = ()) -> None:
    """Overwrite forgotten ranges with blanks; the rows are derived again from what is left."""
    version = store.version(number)
    gone = [*forgotten_ranges(marks, version.size), *more]
    changed: list[tuple[int, bytes]] = []
    blanked = 0
    for chunk in store.chunks(number):
        if any(first < chunk.start + chunk.size and last > chunk.start for first, last in gone):
            data = bytearray(store.read_chunk(chunk.digest))
            blanked += sum(blank(data, first - chunk.start, last - chunk.start) for first, last in gone)
            changed.append((chunk.start, bytes(data)))
    store.put_chunks(number, changed)
    store.set_version(number, parser=0, erased=version.erased + blanked)
