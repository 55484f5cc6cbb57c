"""The job that brings the archive up to date: scan, read what is new, write it, mark what is gone.

Each file moves its own cursor in the transaction that adds its rows, so an interruption leaves every file at a complete
piece and the next run continues from there. Several processes may sync at the same time.

`watch_sources` syncs whenever something changed, and scans everything now and then. File events arrive late, twice or not
at all on some systems, so they only trigger a sync, which finds out what changed.

Files in the agents' folders that look like transcripts, although no source reads them.

Looked for beside the sessions of every agent: a new version of an agent may write another format, or another agent may
share the folder. The work is bounded, because these folders also hold caches and copies of projects.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from threading import Event

from everturn.capture.file_reader import FileCandidate
from everturn.capture.intake import HEAD, Intake, Progress, SyncJob, SyncReport, is_container, take_container
from everturn.capture.read_ahead import ReadAhead
from everturn.capture.scan import ScanResult, is_unchanged, list_files, look_at_file, scan_sources, sort_candidate
from everturn.capture.spool import DrainReport, drain_spool, enrich_calls
from everturn.capture.writer import ArchiveWriter, upgrade_derived
from everturn.errors import MissingPath
from everturn.sources.contract import SearchPlaces, Source, SourceCandidate, read_beginning
from everturn.sources.recognition import describe_tie, resembles_transcript, tied, weigh_claims, winner

__all__ = ["Progress", "SyncJob", "SyncReport", "add_paths", "sync_all", "sync_named", "writer_for"]

#: Older hook events are not matched again.
_RECENT = 7 * 86_400_000


def sync_all(job: SyncJob, retry: bool = False, unread: bool = False) -> SyncReport:
    """Bring everything that the sources find up to date, including the hook events of agents.

    With `unread`, also report files beside the sessions that look like transcripts and are not read.
    """
    drained = drain_spool(job.store, job.spool, job.policy) if job.spool is not None else DrainReport()
    writer = writer_for(job)
    found = scan_sources(job.store, job.sources, job.places, job.machine, writer.now, retry)
    report = SyncReport(unchanged=found.unchanged, waiting=found.waiting)
    report.skipped += [*((problem, "") for problem in found.problems), *drained.problems]
    if unread:
        report.skipped += [(path, UNREAD) for path in find_unread(job.sources, job.places, found.paths)]
    _mark_moves_and_gone(job, found, report)
    found.changed += _look_at_named(job, drained.paths, {candidate.path for candidate in found.changed}, report)
    _take_in(job, writer, found.changed, report, found.bytes_to_read)
    report.rederived += upgrade_derived(writer, job.sources, found.behind, lambda *numbers: None)
    if job.spool is not None:
        enrich_calls(job.store, writer.now - _RECENT)
    return _finish(writer, report)


def sync_named(job: SyncJob, paths: Iterable[str]) -> SyncReport:
    """Bring these transcripts and their attached files up to date, and nothing else."""
    writer, report, seen = writer_for(job), SyncReport(), ScanResult()
    found: dict[str, tuple[Source, SourceCandidate]] = {}
    for path in paths:
        found |= {str(one.path): (source, one) for source, one in _find_with_attached(job, Path(path), report)}
    for path, (source, one) in found.items():
        sort_candidate(seen, look_at_file(source, one, job.store.file(job.machine, path)), writer.now, False)
    report.unchanged, report.waiting = seen.unchanged, seen.waiting
    _take_in(job, writer, seen.changed, report, seen.bytes_to_read)
    enrich_calls(job.store, writer.now - _RECENT)
    return _finish(writer, report)


def add_paths(job: SyncJob, paths: Iterable[Path], source_name: str = "") -> SyncReport:
    """Take in given files, or every transcript below given folders."""
    writer = writer_for(job)
    report = SyncReport()
    candidates: dict[str, FileCandidate] = {}
    for path in paths:
        if not path.exists():
            raise MissingPath(str(path))
        for source, found in _recognise_path(job, path.resolve(), source_name, report):
            candidate = look_at_file(source, found, job.store.file(job.machine, str(found.path)))
            if is_unchanged(candidate):
                report.unchanged += 1
            else:
                candidates.setdefault(candidate.path, candidate)
    todo = list(candidates.values())
    _take_in(job, writer, todo, report, sum(c.stat.st_size for c in todo if c.stat is not None))
    return _finish(writer, report)


def find_transcripts(job: SyncJob, sessions: Collection[str]) -> list[Path]:
    """Return the files of sessions with these native ids, and of their subagents, that the sources find."""
    if not sessions:
        return []
    return [
        found.path
        for source in job.sources.values()
        for root in source.roots(job.places)
        for found in source.find(root)
        if found.native_id in sessions or found.parent in sessions
    ]


def writer_for(job: SyncJob) -> ArchiveWriter:
    """Return a writer with the current time and the tombstones."""
    buried = job.store.tombstones()
    return ArchiveWriter(
        job.store, job.machine, job.owner, job.clock(),
        frozenset((row.agent, row.key) for row in buried if row.kind == "session"),
        frozenset(int(row.key) for row in buried if row.kind == "message"),
    )  # fmt: skip


def _look_at_named(job: SyncJob, paths: Iterable[str], changed: set[str], report: SyncReport) -> list[FileCandidate]:
    """Return transcripts that an agent has named and that are outside of the sources' folders."""
    return [
        look_at_file(source, found, None)
        for path in paths
        if path not in changed and Path(path).is_file() and job.store.file(job.machine, path) is None
        for source, found in _recognise_path(job, Path(path), "", report)
    ]


def _find_with_attached(job: SyncJob, path: Path, report: SyncReport) -> Iterable[tuple[Source, SourceCandidate]]:
    """Yield a transcript with its subagents and outputs below its folder."""
    if (row := job.store.file(job.machine, str(path))) is not None and row[0].format in job.sources:
        file = row[0]
        named = [(job.sources[file.format], SourceCandidate(path, file.kind, file.native_id, file.parent))]
    else:
        named = list(_recognise_path(job, path, "", report)) if path.is_file() else []
    for source, found in named:
        yield source, found
        try:
            yield from ((source, one) for one in source.find(path.parent) if one.parent == found.native_id != "")
        except OSError as failure:
            report.failed.append((str(failure.filename or path.parent), failure.strerror or "cannot be read"))


def _recognise_path(
    job: SyncJob, path: Path, source_name: str, report: SyncReport
) -> Iterable[tuple[Source, SourceCandidate]]:
    """Yield the files at or below `path` that a source recognises."""
    if path.is_dir():
        yield from _recognise_folder(job, path, source_name, report)
    else:
        yield from _recognise_file(job, path, source_name, report, is_named=True)


def _recognise_folder(
    job: SyncJob, folder: Path, source_name: str, report: SyncReport
) -> Iterable[tuple[Source, SourceCandidate]]:
    seen: set[Path] = set()
    for source in _chosen_sources(job, source_name):
        try:
            for found in source.find(folder):
                if found.path not in seen:
                    seen.add(found.path)
                    if (claim := _check_by_content(job, source, found, source_name, report)) is not None:
                        yield claim
        except OSError as failure:  # a folder that cannot be listed; the source has found what it could reach
            report.failed.append((str(failure.filename or folder), failure.strerror or "cannot be read"))
    for number, path in enumerate(sorted(folder.rglob("*"))):
        if path not in seen and path.is_file() and not path.is_symlink():
            job.progress(number, 0, 0, 0, str(path))
            yield from _recognise_file(job, path, source_name, report)


def _recognise_file(
    job: SyncJob, path: Path, source_name: str, report: SyncReport, is_named: bool = False
) -> Iterable[tuple[Source, SourceCandidate]]:
    """Yield a file if a source recognises it. One that the user named has a reason if none does."""
    if (head := _read_head(path, report)) is None:
        return
    chosen = job.sources.get(source_name) if is_named else None
    before = len(report.skipped)
    if (claim := _claiming_source(job, path, head, source_name, report)) is not None:
        yield claim
    elif head and chosen is not None and chosen.takes:
        yield chosen, SourceCandidate(path, chosen.takes)
    elif len(report.skipped) > before:
        return
    elif resembles_transcript(head):
        report.skipped.append((str(path), UNREAD))
    elif is_named:
        why = "no source knows this format; `everturn sources` lists the supported formats"
        report.skipped.append((str(path), why))
    else:
        report.other.append(str(path))


def _check_by_content(
    job: SyncJob, source: Source, found: SourceCandidate, source_name: str, report: SyncReport
) -> tuple[Source, SourceCandidate] | None:
    """Return the source of a found file by its content: many agents name files by a bare UUID, and names are hints only."""
    head = read_beginning(found.path) if found.kind in ("main", "subagent") else b""
    if not head:
        return source, found
    claims = weigh_claims(_chosen_sources(job, source_name), found.path, head)
    if tied(claims) and source in (claim.source for claim in tied(claims)):
        return source, found  # the place of a file settles what its content leaves open
    best = winner(claims)
    if best is not None and best.source is not source:
        return best.source, best.found
    if tied(claims):
        report.skipped.append((str(found.path), describe_tie(claims)))
        return None
    return source, found


def _claiming_source(
    job: SyncJob, path: Path, head: bytes, source_name: str, report: SyncReport
) -> tuple[Source, SourceCandidate] | None:
    """Return the source that recognises a file by its content. A tie is reported and takes neither."""
    claims = weigh_claims(_chosen_sources(job, source_name), path, head)
    if tied(claims):
        report.skipped.append((str(path), describe_tie(claims)))
    best = winner(claims)
    return (best.source, best.found) if best is not None else None


def _read_head(path: Path, report: SyncReport) -> bytes | None:
    """Return the first bytes, or None with an entry in the report. A pipe would block forever."""
    if not path.is_file():
        report.failed.append((str(path), "not a regular file"))
        return None
    try:
        with path.open("rb") as file:
            return file.read(HEAD)
    except OSError as failure:
        report.failed.append((str(path), failure.strerror or "cannot be read"))
        return None


def _chosen_sources(job: SyncJob, source_name: str) -> list[Source]:
    return [source for name, source in job.sources.items() if source_name in ("", name)]


def _mark_moves_and_gone(job: SyncJob, found: ScanResult, report: SyncReport) -> None:
    store = job.store
    if not (found.moved or found.gone):
        return
    members = [file for file, _ in store.files(job.machine) if file.container]
    with store.write():
        for file, candidate in found.moved:
            store.set_file(file.id, path=candidate.path, state="live", container=0)
            for member in (one for one in members if one.container == file.id):
                store.set_file(member.id, path=candidate.path + member.path[len(file.path) :])
        lost, moved = {file.id for file in found.gone}, {file.id for file, _ in found.moved}
        inside = (one for one in members if one.container in lost and one.state == "live" and one.id not in moved)
        for file in [*found.gone, *inside]:
            store.set_file(file.id, state="gone")
    for _, candidate in found.moved:
        if (row := store.file(job.machine, candidate.path)) is not None:
            candidate.known, candidate.version = row
        found.changed.append(candidate)
    report.moved, report.gone = len(found.moved), len(found.gone)


def _take_in(
    job: SyncJob, writer: ArchiveWriter, candidates: list[FileCandidate], report: SyncReport, total: int
) -> None:
    intake = Intake(job, writer, report)
    with ReadAhead(job, writer, candidates) as ahead:
        for number, candidate in enumerate(candidates):
            job.progress(number, len(candidates), report.bytes_read, total, candidate.path)
            if is_container(candidate):
                take_container(intake, candidate)
            elif (pieces := ahead.pieces(number)) is not None:
                intake.take_prepared(candidate, pieces)
            else:
                intake.take(candidate)
        intake.flush()
    job.progress(len(candidates), len(candidates), report.bytes_read, total, "")


def _finish(writer: ArchiveWriter, report: SyncReport) -> SyncReport:
    """Complete a report. What it says of sessions is what lists have more than before; versions and copies are none."""
    _note_repositories(writer)
    opened, listed = set(writer.opened), writer.store.listed_sessions(writer.opened) if writer.opened else {}
    added = {one.session: one.kind for row, one in listed.items() if row in opened and one.oldest in opened}
    report.sessions = sum(kind == "main" for kind in added.values())
    report.subagents, report.turns = len(added) - report.sessions, writer.written["turns"]
    report.messages, report.problems = writer.written["messages"], writer.written["problems"]
    report.doubts = writer.doubts
    return report


_GIT_SECONDS = 10  # to walk through the commits of a large repository


def _note_repositories(writer: ArchiveWriter) -> None:
    """Note the repository of each new session that was held at the top of one: its folder may be moved, or a worktree."""
    store, found = writer.store, dict[int, str]()
    for row in writer.opened:
        session, text = store.session(row)
        if session.kind == "main" and (name := repository_name(text.workspace)):
            found[store.version(session.version).source] = name
    if found:
        with store.write():
            for source, name in found.items():
                store.set_project_of(source, name)


@lru_cache(1024)
def repository_name(folder: str) -> str:
    """Return a name for the repository of a folder that its moves, worktrees and clones share: its first commit.

    "" for a folder that is not the top of a repository.
    """
    if not os.path.isabs(folder) or not os.path.lexists(os.path.join(folder, ".git")):
        return ""
    command = ["git", "-C", folder, "rev-list", "--max-parents=0", "HEAD"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    commits = done.stdout.split() if done.returncode == 0 else []
    return f"commit/{min(commits)}" if commits else ""


TICK_MS = 500
RESCAN_TICKS = 60
DEBOUNCE_MS = 200


def watch_sources(job: SyncJob, stop: Event, tell: Callable[[SyncReport], None]) -> None:
    """Sync until `stop` is set; `tell` receives the report of every sync that did something."""
    from watchfiles import watch as file_events

    _sync_and_tell(job, tell)
    while not stop.is_set():
        if not (roots := _roots(job)):
            stop.wait(TICK_MS / 1000)
            continue
        events = file_events(
            *roots, stop_event=stop, debounce=DEBOUNCE_MS, step=50, rust_timeout=TICK_MS, yield_on_timeout=True,
            raise_interrupt=True,
        )  # fmt: skip
        for tick, changes in enumerate(events):
            # The first tick covers what was written between the last sync and the start of the watch.
            if changes or tick % RESCAN_TICKS == 0:
                _sync_and_tell(job, tell)
            if tick % RESCAN_TICKS == 0 and _roots(job) != roots:
                break


def _roots(job: SyncJob) -> list[str]:
    return [str(root) for source in job.sources.values() for root in source.roots(job.places)]


def _sync_and_tell(job: SyncJob, tell: Callable[[SyncReport], None]) -> None:
    report = sync_all(job)
    if report.files or report.gone or report.moved or report.rederived:
        tell(report)


# --- Files in the agents' folders that look like transcripts, although no source reads them ---
#: Why such a file is not read, and what to do.
UNREAD = "looks like a transcript, but no source reads this format; `everturn sources explain FILE` says why"

_ENDINGS = (".json", ".jsonl", ".ndjson")
_SKIPPED = frozenset((".git", "node_modules", ".venv", "__pycache__", "cache", "Cache", "CachedData", "logs"))
_MOST_ENTRIES = 20_000
_MOST_FILES = 2_000
_HEAD = 16 << 10


def find_unread(sources: Mapping[str, Source], places: SearchPlaces, known: Collection[str]) -> list[str]:
    """Return the files below the sources' folders that look like transcripts and are not `known`."""
    roots = {os.path.realpath(root): root for source in sources.values() for root in source.roots(places)}
    unread: dict[str, None] = {}
    for seen, path in enumerate(_candidates(roots.values(), known)):
        if seen >= _MOST_FILES:
            break
        if resembles_transcript(read_beginning(path, _HEAD)):
            unread[path] = None
    return list(unread)


def listed_paths(sources: Mapping[str, Source], places: SearchPlaces) -> set[str]:
    """Return the paths of all files that the sources find."""
    return {str(found.path) for _, found in list_files(sources, places, [])}  # the scan reports problems


def _candidates(roots: Iterable[Path], known: Collection[str]) -> Iterator[str]:
    left = _MOST_ENTRIES
    for root in roots:
        for folder, below, names in os.walk(root):
            left -= len(names) + len(below)
            if left < 0:
                return
            below[:] = sorted(name for name in below if name not in _SKIPPED)
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith(_ENDINGS) and path not in known and not os.path.islink(path):
                    yield path
