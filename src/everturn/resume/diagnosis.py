"""Diagnosis of a session's file: its flaws, and its content once they are mended.

The input is every copy of the file: versions in the archive, older first, and last the file as it is now. Records that a
later copy has lost are filled in from an earlier one, matched by their bytes and positions. The mended records are read
like any file, into an archive in memory; nothing else is written. Every finding names its copy and bytes.
"""

from __future__ import annotations

import os
import re
import tempfile
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import accumulate, groupby

from msgspec import Struct, structs

from everturn.attribution.alignment import anchor_pairs
from everturn.capture.file_reader import FileCandidate
from everturn.capture.intake import Intake, SyncJob, SyncReport
from everturn.capture.policy import Policy
from everturn.capture.sync import writer_for
from everturn.model.archive import Call, Session
from everturn.resume.pictures import refused_pictures
from everturn.sessions.lookup import best_match
from everturn.sessions.messages import has_words, read_messages
from everturn.sources.contract import CheckedRecord, FileCheck, Flaw, SearchPlaces, Source, SourceCandidate
from everturn.sources.toolkit.file_form import is_document
from everturn.sources.toolkit.record_check import KINDS, make_flaw, split
from everturn.store.contract import Store, open_store
from everturn.text.printable import plural


def merge_copies(older: Sequence[CheckedRecord], newer: Sequence[CheckedRecord]) -> list[CheckedRecord]:
    """Return the newer records, with lost older ones at their old positions."""
    names, there = _record_digests(older), _record_digests(newer)
    pairs = dict(_pair_records(names, there))
    moved = Counter(there) - Counter(names[place] for place in pairs)
    lost: dict[int, list[CheckedRecord]] = {}
    anchor = -1
    for place, name in enumerate(names):
        if place in pairs:
            anchor = pairs[place]
        elif moved[name] > 0:
            moved[name] -= 1  # it moved
        elif not older[place].is_torn:
            lost.setdefault(anchor, []).append(older[place])
    found = lost.get(-1, [])
    for place, record in enumerate(newer):
        found += [record, *lost.get(place, ())]
    return found


def _record_digests(pieces: Sequence[CheckedRecord]) -> list[bytes]:
    return [blake2b(record.raw, digest_size=16).digest() for record in pieces]


def _pair_records(older: Sequence[bytes], newer: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the positions of equal records in the older and the newer copy, both ascending."""
    least = min(len(older), len(newer))
    first = next((n for n in range(least) if older[n] != newer[n]), least)
    left = least - first
    last = next((n for n in range(left) if older[-1 - n] != newer[-1 - n]), left)
    begin = [(n, n) for n in range(first)]
    end = [(len(older) - n, len(newer) - n) for n in range(last, 0, -1)]
    between = anchor_pairs(older, newer, first, len(older) - last, first, len(newer) - last)
    return begin + between + end


#: A session without messages of these origins cannot be continued.
_SPEAKING_ORIGINS = ("human", "agent", "model")
_BLANK = b"\0 \t\r\n\xef\xbb\xbf"
_ACCEPTED_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")  # of a call, as providers take it


class SessionCopy(Struct, frozen=True):
    """One copy of a session's file."""

    name: str  # `version 2`, or `file`
    path: str
    data: bytes  # as lines of UTF-8
    form: tuple[str, ...] = ()  # what was wrong with its form: kinds of flaws


class DiagnosisFinding(Struct, frozen=True):
    """A flaw, its location, and whether content is lost by it."""

    kind: str  # of `record_check.KINDS`
    note: str
    path: str
    copy: str
    start: int
    size: int
    lost: bool = False


class BrokenSession(Struct, frozen=True):
    """A session's file and all copies of it, the current one last."""

    source: Source
    found: SourceCandidate
    native_id: str  # the requested session
    copies: list[SessionCopy]
    is_gone: bool = False


class Diagnosis(Struct, frozen=True):
    """The findings, and the mended session in an archive of its own."""

    patient: BrokenSession
    findings: list[DiagnosisFinding]
    store: Store
    session: Session | None
    refused: str = ""  # why it cannot be repaired

    @property
    def state(self) -> str:
        """sound | mendable | lossy: some content is lost | irrecoverable."""
        if self.refused:
            return "irrecoverable"
        if any(one.lost for one in self.findings):
            return "lossy"
        return "mendable" if self.findings else "sound"


@contextmanager
def diagnose_session(patient: BrokenSession, places: SearchPlaces, now: int) -> Iterator[Diagnosis]:
    """Diagnose the copies of a file; the last one is the current one."""
    source, copies = patient.source, patient.copies
    mended = _mend_records(source, patient.found, copies)
    flaws = [*mended.flaws, *(Flaw(kind, KINDS[kind], 0, 0, len(copies) - 1) for kind in copies[-1].form)]
    if patient.is_gone:
        flaws.append(Flaw("gone", "the file is gone; the archive has it", 0, 0, len(copies) - 1))
    with _open_mended(patient, mended.pieces, places, now) as (store, session):
        starts = [0, *accumulate(len(record.raw) + 1 for record in mended.pieces)]
        if session is not None:
            flaws += _find_reading_flaws(store, session, mended.pieces, starts)
            flaws += _find_call_flaws(store, session, mended.pieces, starts)
            flaws += _find_picture_flaws(store, source, session, mended.pieces, starts)
        findings = [_make_finding(copies, one) for one in sorted(flaws, key=lambda one: (-one.copy, one.start))]
        yield Diagnosis(patient, findings, store, session, _refusal_reason(store, session, copies, findings))


def _make_finding(copies: Sequence[SessionCopy], one: Flaw) -> DiagnosisFinding:
    copy = copies[one.copy]
    return DiagnosisFinding(one.kind, one.note, copy.path, copy.name, one.start, one.size, one.lost)


def _refusal_reason(
    store: Store, session: Session | None, copies: Sequence[SessionCopy], findings: list[DiagnosisFinding]
) -> str:
    """Return why the session cannot be continued, or ""."""
    if not any(copy.data.strip(b"\0 \t\r\n") for copy in copies):
        return "there is nothing in it but empty space" if any(copy.data for copy in copies) else "it is empty"
    if session is not None and not has_words(session):
        return f"its words were not kept (mode {session.mode})"
    if session is None or not any(row.origin in _SPEAKING_ORIGINS for row in store.messages(session.id)):
        unread = sum(one.size for one in findings if one.lost)
        return f"no record with words of a human or a model can be read ({unread:,} bytes are damaged)"
    return ""


# --- the records ---
def _mend_records(source: Source, found: SourceCandidate, copies: Sequence[SessionCopy]) -> FileCheck:
    """Return the records of the conversation in order, and the flaws of the last copy."""
    data = copies[-1].data
    if source.check is None or is_document(data, found.path.name) or data.lstrip(_BLANK)[:1] == b"[":
        return _take_fullest(copies)
    last = len(copies) - 1
    pieces: list[CheckedRecord] = []
    flaws: list[Flaw] = []
    for number, copy in enumerate(copies):
        read = split(copy.data, number)
        pieces, flaws = merge_copies(pieces, read.pieces), read.flaws
    gaps = _FilledGaps(pieces, last)
    flaws = [gaps.judge_flaw(one) for one in flaws]
    flaws += _find_missing(copies, pieces, last)
    checked = source.check(found, gaps.drop_torn(pieces, copies, flaws))
    stretches = _LostStretches(pieces, last, source)
    flaws = [stretches.judge_flaw(one) for one in flaws]
    lost = [one for one in [*flaws, *checked.flaws] if one.lost and one.copy == last and one.kind in _STRETCHES]
    ends = {one.start + one.size for one in lost if one.kind == "torn"}
    flaws = [
        structs.replace(one, lost=False) if one.kind == "nul_block" and one.start in ends else one for one in flaws
    ]
    return FileCheck(checked.pieces, [*flaws, *(stretches.count_once(one, lost) for one in checked.flaws)])


def _take_fullest(copies: Sequence[SessionCopy]) -> FileCheck:
    """Return the longest copy unchanged, if the file has no records or nobody can check them."""
    last = len(copies) - 1
    number = max(range(len(copies)), key=lambda one: (len(copies[one].data), one))
    data, flaws = copies[number].data, []
    if number != last:
        lost = len(data) - len(copies[last].data)
        flaws.append(Flaw("missing", f"{lost:,} bytes fewer than {copies[number].name} has", 0, len(data), number))
    return FileCheck([CheckedRecord({}, data, 0, len(data), number)], flaws)


class _FilledGaps:
    """Positions in the last copy where other copies fill in records."""

    def __init__(self, pieces: Sequence[CheckedRecord], last: int) -> None:
        self._last = last
        self._starts = [record.start for record in pieces if record.copy == last and not record.is_torn]
        self._filled: set[int] = set()  # by number of records of the last copy before the gap
        passed = 0
        for record in pieces:
            if record.copy != last:
                self._filled.add(passed)
            elif not record.is_torn:
                passed += 1

    def is_filled(self, start: int) -> bool:
        """Whether another copy has records for this position."""
        return bisect_left(self._starts, start) in self._filled

    def judge_flaw(self, one: Flaw) -> Flaw:
        """Mark damage as no loss if another copy has the records."""
        if not one.lost or one.kind not in ("damaged", "nul_block") or not self.is_filled(one.start):
            return one
        return structs.replace(one, lost=False, note=f"{KINDS[one.kind]}; another copy has what stood there")

    def drop_torn(
        self, pieces: Sequence[CheckedRecord], copies: Sequence[SessionCopy], flaws: list[Flaw]
    ) -> list[CheckedRecord]:
        """Drop a torn record that also exists whole."""
        whole = sorted(record.raw for record in pieces if not record.is_torn)
        kept = []
        for record in pieces:
            if record.is_torn and (self.is_filled(record.start) or _is_beginning(_torn_bytes(record, copies), whole)):
                flaws.append(make_flaw("torn", record, f"{KINDS['torn']}; it is there whole as well"))
            else:
                kept.append(record)
        return kept


#: Findings about bytes in which records may have been.
_STRETCHES = ("damaged", "nul_block", "torn")


class _LostStretches:
    """Describes damaged stretches of the last copy, from the records around them."""

    def __init__(self, pieces: Sequence[CheckedRecord], last: int, source: Source) -> None:
        self._records = [record for record in pieces if record.copy == last and not record.is_torn]
        self._starts = [record.start for record in self._records]
        self._follows = source.follows

    def judge_flaw(self, one: Flaw) -> Flaw:
        """Mark damage as no loss if the records around it follow each other."""
        place = bisect_left(self._starts, one.start)
        if not one.lost or one.kind not in _STRETCHES or self._follows is None or not 0 < place < len(self._records):
            return one
        if not self._follows(self._records[place - 1], self._records[place]):
            return one
        return structs.replace(one, lost=False, note=f"{KINDS[one.kind]}; no record is missing there")

    def count_once(self, one: Flaw, lost: Sequence[Flaw]) -> Flaw:
        """Mark a missing parent as no loss of its own if it was in a stretch that counts as lost."""
        if one.kind != "dangling_parent" or not one.lost:
            return one
        place = bisect_left(self._starts, one.start) - 1
        end = self._records[place].start if place >= 0 else 0
        return structs.replace(one, lost=False) if any(end <= other.start < one.start for other in lost) else one


def _torn_bytes(record: CheckedRecord, copies: Sequence[SessionCopy]) -> bytes:
    return copies[record.copy].data[record.start : record.start + record.size].strip(_BLANK)


def _is_beginning(torn: bytes, whole: list[bytes]) -> bool:
    place = bisect_left(whole, torn)
    return place < len(whole) and whole[place].startswith(torn)


def _find_missing(copies: Sequence[SessionCopy], pieces: Sequence[CheckedRecord], last: int) -> Iterator[Flaw]:
    for number, run in groupby(pieces, key=lambda record: record.copy):
        if number != last:
            lost = list(run)
            end = max(record.start + record.size for record in lost)
            start = min(record.start for record in lost)
            note = f"{plural(len(lost), 'record')} that the file no longer has; {copies[number].name} has them"
            yield Flaw("missing", note, start, end - start, number)


# --- the mended file ---
@contextmanager
def _open_mended(
    patient: BrokenSession, pieces: Sequence[CheckedRecord], places: SearchPlaces, now: int
) -> Iterator[tuple[Store, Session | None]]:
    """Yield an archive in memory with the mended records, and their session."""
    source, found = patient.source, patient.found
    store = open_store("memory:")
    try:
        job = SyncJob(store, {source.name: source}, places, Policy(), "", "", lambda: now)
        intake = Intake(job, writer_for(job), SyncReport())
        with tempfile.TemporaryFile() as file:
            file.writelines(line for record in pieces for line in (record.raw, b"\n"))
            file.flush()
            intake.take_open(FileCandidate(source, found, None, None, os.fstat(file.fileno())), file, "full")
            intake.flush()
        sessions = store.sessions_of(source.name, patient.native_id)
        yield store, best_match(sessions) if sessions else None
    finally:
        store.close()


def _find_reading_flaws(
    store: Store, session: Session, pieces: Sequence[CheckedRecord], starts: list[int]
) -> Iterator[Flaw]:
    """Yield the records that the format's reader could not read, if nobody checked them before."""
    for row in store.problems(session.version):
        if row.kind not in ("indexed_in_part", "invalid_utf8"):
            place = max(0, bisect_right(starts, row.start) - 1)
            record, at = pieces[place], row.start - starts[place]
            size = max(0, min(row.size, record.size - at))  # the line end may be ours
            yield Flaw("damaged", row.reason, record.start + min(at, record.size), size, record.copy, lost=True)


def _find_call_flaws(
    store: Store, session: Session, pieces: Sequence[CheckedRecord], starts: list[int]
) -> Iterator[Flaw]:
    """Yield calls and results that do not match, located by their records."""
    rows = {row.seq: row for row in store.messages(session.id)}
    seen: set[str] = set()
    for call in store.calls(session.id):
        record = pieces[max(0, bisect_right(starts, rows[call.seq].start) - 1)]
        yield from _judge_call(call, record, seen)
        seen.add(call.call_id)


def _find_picture_flaws(
    store: Store, source: Source, session: Session, pieces: Sequence[CheckedRecord], starts: list[int]
) -> Iterator[Flaw]:
    """Yield the pictures that providers refuse. Nothing is lost: the archive and the file have them."""
    if not has_words(session):
        return
    for row, message in read_messages(store, {source.name: source}, session):
        for why in refused_pictures(message):
            record = pieces[max(0, bisect_right(starts, row.start) - 1)]
            yield make_flaw("bad_image", record, f"a picture that providers refuse ({why}): a sentence takes its place")


def _judge_call(call: Call, record: CheckedRecord, seen: set[str]) -> Iterator[Flaw]:
    name = call.name or "a tool"
    if call.status == "orphan":
        yield make_flaw("stray_result", record, "a result without its tool call: its words are told as words")
        return
    if not _ACCEPTED_ID.fullmatch(call.call_id):
        yield make_flaw("bad_call_id", record, f"an id that providers refuse: this call of {name} gets another")
    if call.call_id in seen:
        yield make_flaw("same_call_id", record, f"the id of an earlier call: this one of {name} gets another")
    if call.status == "open":
        yield make_flaw("open_call", record, f"no result of this call of {name}: it is answered with that")
