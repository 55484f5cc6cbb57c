"""Erases a session for good: bytes, rows, index and copies of its messages in forks. Tombstones keep it from returning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from everturn.capture.writer import ArchiveWriter, Mark, blank, derive_pending, find_made_from, forgotten_ranges
from everturn.model.archive import FRAMEWORK, HANDED_OVER, ORIGIN, FrameworkData, Session, Tombstone
from everturn.sources.contract import Source
from everturn.store.contract import Store

if TYPE_CHECKING:  # most have none
    from everturn.store.vector_file import VectorFile

#: Kinds of kept rows that summarise a session.
_SUMMARY_KINDS = ("summary", "turn_summary", "synthesis")


@dataclass
class ForgetReport:
    sessions: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    still_there: list[str] = field(default_factory=list)  # source files that still exist on disk
    forked_messages: int = 0
    kept_in: list[str] = field(default_factory=list)  # sessions with the same messages that stay


def plan_forget(store: Store, session: Session) -> list[Session]:
    """Return what `forget_session` would erase: the session in every version, its subagents and outputs."""
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


def _is_attached(other: Session, one: Session) -> bool:
    return other.parent == one.native_id or other.native_id.startswith(f"{one.native_id}/")


def forget_session(
    writer: ArchiveWriter,
    sources: Mapping[str, Source],
    session: Session,
    keep_forks: bool = False,
    vectors: VectorFile | None = None,
) -> ForgetReport:
    """Erase a session and its vectors for good."""
    store = writer.store
    doomed = plan_forget(store, session)
    made = find_made_from(store, doomed)
    forks = _fork_sessions(store, [*doomed, *made]) + made
    affected = _affected_sessions(store, doomed, forks)
    _erase_vectors(vectors, affected)  # first: after an interruption there are rather too few than too many
    report = ForgetReport(sorted({row.native_id for row in doomed}))
    with store.write():
        store.bury([Tombstone("session", row.agent, row.native_id, writer.now) for row in doomed])
        if keep_forks:
            report.kept_in = [fork.native_id for fork in forks]
        else:
            report.forked_messages = _erase_in_forks(store, doomed, forks, writer.now)
        _detach_from_origin(store, made)
        changed = {fork.version for fork in forks} | _erase_files(store, doomed, report)
        _erase_kept(store, doomed, [] if keep_forks else forks)
    for number in sorted(changed):  # their rows may quote forgotten messages, and they own more messages now
        version = store.version(number)
        file, _ = store.file_by_id(version.source)
        if file.format in sources:
            derive_pending(writer, sources[file.format], file, version)
    store.scrub()
    _erase_vectors(vectors, affected)  # another process may have computed some meanwhile
    return report


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
    for fork in forks:
        store.drop_kept(fork.agent, fork.native_id, _SUMMARY_KINDS)


def _erase_framework_data(store: Store, doomed: set[str]) -> None:
    """Delete what a framework keeps behind forgotten sessions, unless another session refers to it too."""
    rows = store.kept(FRAMEWORK)
    kept = {row.value for row in rows if row.subject not in doomed}
    for value in {row.value for row in rows if row.subject in doomed} - kept:
        store.erase_framework_data(msgspec.json.decode(value, type=FrameworkData))


def _erase_files(store: Store, doomed: list[Session], report: ForgetReport) -> set[int]:
    """Delete files of forgotten sessions, blank their messages in shared files; return the blanked versions."""
    ids = {row.id for row in doomed}
    sources = {row.version: store.version(row.version).source for row in doomed}
    shared = {
        source
        for version, source in sources.items()
        if any(one.n_messages and one.id not in ids for one in store.sessions_in(version))
    }
    files = {store.version(row.version).source for row in doomed}
    for source in sorted(files | {store.file_by_id(file)[0].container for file in files} - {0}):
        report.files.append(store.file_by_id(source)[0].path)
        if source not in shared:
            store.delete_file(source)
    blanked = {version for version, source in sources.items() if source in shared}
    for version in sorted(blanked):
        marks = [(row.start, one.id in ids) for one in store.sessions_in(version) for row in store.messages(one.id)]
        _blank_version(store, version, marks)
    return blanked


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
        marks_here = [(row.start, is_gone) for row, is_gone in zip(rows, gone, strict=True)]
        _blank_version(store, version, marks_here, _title_ranges(store, version, forks) if handed_keys else ())
        erased |= {mark for mark in copies if mark is not None}
        n_erased += sum(gone)
    store.bury([Tombstone("message", doomed[0].agent, str(mark), now) for mark in sorted(erased)])
    return n_erased


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
