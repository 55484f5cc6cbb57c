"""Checks an archive by using it: writes, reads and searches; reports drift and what agents are about to delete."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from everturn.capture.file_reader import FileCandidate
from everturn.capture.scan import is_unchanged, look_at_file
from everturn.capture.sync import find_unread, listed_paths
from everturn.maintenance.forget import ERASURE
from everturn.model.archive import IndexRow, MessageRow, Session, SessionGrowth, SourceFile, Turn, Version
from everturn.model.vocabulary import DOUBTS
from everturn.retrieval.search import search
from everturn.sources.contract import SearchPlaces, Source
from everturn.store.contract import SessionFilter, Store
from everturn.text.printable import plural
from everturn.text.times import ago

_DAY = 86_400_000
_SOON = 7 * _DAY
_NETWORK = tuple("nfs nfs4 cifs smbfs smb3 sshfs fuse.sshfs 9p afs fuse.rclone davfs webdav".split())
_CLOUD = ("dropbox", "onedrive", "google drive", "googledrive", "icloud", "mobile documents", "nextcloud", "syncthing")


_MOST_DOUBTS = 5
_SILENCE = 10 * 60_000  # ms without an event in which a session went on: its hooks do not fire


@dataclass
class HealthCheck:
    """One check. `level` is ok, warn or bad; `advice` says what to do."""

    name: str
    level: str
    text: str
    advice: str = ""


@dataclass
class HealthReport:
    checks: list[HealthCheck] = field(default_factory=list)

    def note(self, name: str, level: str, text: str, advice: str = "") -> None:
        self.checks.append(HealthCheck(name, level, text, advice))

    @property
    def worst(self) -> str:
        return max((check.level for check in self.checks), key=["ok", "warn", "bad"].index, default="ok")


@dataclass
class SourceRoot:
    """A folder of an agent's sessions, and how much of it is archived."""

    title: str  # of the agent
    path: str
    files: int = 0
    behind: int = 0  # not fully archived
    leaving: int = 0  # to be deleted by the agent within a week
    at_risk: int = 0  # of those, not archived
    lost_first: int = 0  # time of the first deletion of a file that is not archived; 0 if unknown
    days: int = 0  # retention of the agent; 0 if unlimited or unknown
    said_by: str = ""
    unreadable: str = ""  # a folder below it that cannot be listed, and why


def examine_archive(
    store: Store,
    sources: Mapping[str, Source],
    places: SearchPlaces,
    machine: str,
    folder: Path | None,
    clock: Callable[[], int],
) -> HealthReport:
    """Run all checks. `folder` is that of the archive, if it is a file."""
    report = HealthReport()
    health = store.check(quick=True)
    if health.problems:
        report.note(
            "database", "bad", "; ".join(health.problems), "restore a backup; `everturn verify` shows what is affected"
        )
    else:
        report.note("database", "ok", f"{health.engine}, schema {health.schema}, whole")
    if waiting := len(store.kept(ERASURE)):
        text = f"{waiting} not complete: deleted words may still be in the log of the database"
        report.note("erasure", "bad", text, "close other programs that read the archive; the next command completes it")
    _prove_round_trip(report, store, sources, machine, clock())
    if folder is not None:
        risk = risky_folder(folder)
        if risk:
            report.note(
                "folder", "warn", risk, "move the archive to a local disk (EVERTURN_DB or `everturn config set db`)"
            )
    now = clock()
    _note_unread(report, store, sources, places, machine)
    return look_at_roots(store, roots(store, sources, places, machine, now), now, report)


@dataclass(frozen=True)
class Integration:
    """An agent that everturn is installed into."""

    agent: str
    title: str
    installed: int  # when, in ms UTC
    changed: tuple[str, ...] = ()  # files of the installation that are gone or no longer hold what was written
    advice: str = ""  # what the user has to do once


def check_integrations(report: HealthReport, store: Store, found: Sequence[Integration], now: int) -> None:
    """Check that hooks are in place and fire: an agent that was used since has reported events."""
    for one in found:
        name = f"hooks of {one.title}"
        if one.changed:
            text = f"{plural(len(one.changed), 'file')} changed since the installation: {one.changed[0]}"
            report.note(name, "warn", text, f"run `everturn install {one.agent}` again")
            continue
        last = store.last_hook_event(one.agent)
        rows, _ = store.sessions(SessionFilter(agent=one.agent, since=one.installed), 1)
        newest = rows[0][0] if rows else None
        told = f"the last event was {ago(last, now)}" if last is not None else "there was no event"
        used = newest is not None and (newest.started or 0) > one.installed
        if newest is not None and used and (newest.ended or 0) > (last or 0) + _SILENCE:
            text = f"they do not fire: {told}, its newest session is from {ago(newest.ended, now)}"
            report.note(name, "warn", text, one.advice or f"restart {one.title}, then run `everturn doctor` again")
        elif last is None:
            report.note(name, "ok", f"installed {ago(one.installed, now)}; {one.title} has not been used since")
        else:
            report.note(name, "ok", f"they fire: {told}")


def _note_unread(
    report: HealthReport, store: Store, sources: Mapping[str, Source], places: SearchPlaces, machine: str
) -> None:
    known = {file.path for file, _ in store.files(machine)} | listed_paths(sources, places)
    if unread := find_unread(sources, places, known):
        more = f" and {len(unread) - 1:,} more" if len(unread) > 1 else ""
        text = f"{plural(len(unread), 'file')} beside the sessions of agents not read: {unread[0]}{more}"
        report.note("unread", "warn", text, "`everturn sources explain FILE` says why; `everturn sources` lists all")


def risky_folder(folder: Path) -> str:
    """Return why a folder is unsafe for a database, or ''."""
    text = str(folder).lower()
    for name in _CLOUD:
        if name in text:
            return f"{folder} looks like a cloud-synced folder: two machines writing one database file damage it"
    kind = _file_system(folder)
    if kind in _NETWORK:
        return f"{folder} is on a network file system ({kind}), where database locks are not safe"
    return ""


def _file_system(folder: Path) -> str:
    """Return the type of the file system, or "" if unknown."""
    try:
        lines = Path("/proc/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    real = os.path.realpath(folder)
    for line in lines:
        parts = line.split(" ")
        if len(parts) > 2 and len(parts[1]) > len(best) and (real + "/").startswith(parts[1].rstrip("/") + "/"):
            best, kind = parts[1], parts[2]
    return kind


def _prove_round_trip(
    report: HealthReport, store: Store, sources: Mapping[str, Source], machine: str, now: int
) -> None:
    """Write a tiny session, read it back, find it as `everturn search` does, and delete it again."""
    word = f"probe{now:x}"
    data = f"{word}\n".encode()
    with store.write():
        file = store.add_file(SourceFile(0, "(probe)", machine, "", f"(probe {now})", "meta", word))
        version = store.add_version(Version(source=file, offset=len(data), size=len(data), parsed=len(data), parser=-1))
        store.append_raw(version, 0, data)
        session = store.open_session(Session(0, "(probe)", word, version, "meta")).id
        row = MessageRow(0, 0, 0, -1, "system", "system", "notice", now, "ms", None, 0, len(data))
        index = IndexRow(0, (None, None, None, None, None, None, word))
        store.append(session, SessionGrowth([row], [Turn(n_messages=1)], [], [], [], [], [index], []))
    try:
        read = store.read_raw(version, 0, len(data)) == data
        hits = search(store, sources, word, now=now).items
        found = any(hit.session.id == session and word in hit.snippet for hit in hits)
    finally:
        with store.write():
            store.delete_file(file)
    if read and found:
        report.note("proof", "ok", "wrote, read back and found a test message")
    else:
        wrong = "could not be read back" if not read else "was not found by search"
        report.note("proof", "bad", f"a test message {wrong}", "run `everturn verify`, then `everturn rebuild`")


def look_at_roots(store: Store, found: list[SourceRoot], now: int, report: HealthReport | None = None) -> HealthReport:
    """Run the checks that write nothing: folders of agents, unknown record types, quarantine."""
    report = report or HealthReport()
    for root in found:
        name = f"{root.title} in {root.path}"
        if root.unreadable:
            report.note(name, "warn", root.unreadable, "make the folder readable, then run `everturn sync`")
        if not root.behind:
            report.note(name, "ok", f"{plural(root.files, 'file')}, all in the archive")
        elif root.at_risk:
            left = plural((root.lost_first - now) // _DAY + 1, "day")
            when = "at any time" if root.lost_first <= now else f"within {left}"
            text = (
                f"{root.behind:,} of {plural(root.files, 'file')} are not in the archive; {root.title} may delete "
                f"{root.at_risk:,} of these {when} (it keeps them for {plural(root.days, 'day')}; {root.said_by})"
            )
            report.note(name, "bad", text, "run `everturn sync` now")
        else:
            text = f"{root.behind:,} of {plural(root.files, 'file')} are not yet fully in the archive"
            report.note(name, "warn", text, "run `everturn sync`")
    if not found:
        advice = "`everturn add PATH` imports files from anywhere"
        report.note("sources", "ok", "no agent history found on this machine", advice)
    _note_drift(report, store)
    bad = [file for file, _ in store.files() if file.fail_reason]
    for file in bad[:10]:
        reason = f"{file.path}: {file.fail_reason} (tried {file.fail_count}×)"
        report.note("quarantine", "warn", reason, "`everturn sync --retry`")
    if len(bad) > 10:
        report.note("quarantine", "warn", f"{len(bad) - 10} more files in quarantine", "`everturn sources` lists them")
    return report


def roots(
    store: Store, sources: Mapping[str, Source], places: SearchPlaces, machine: str, now: int
) -> list[SourceRoot]:
    """Return every folder of agent sessions on this machine."""
    known = {file.path: (file, version) for file, version in store.files(machine)}
    return [_examine_root(source, root, known, now) for source in sources.values() for root in source.roots(places)]


def _examine_root(source: Source, path: Path, known: dict[str, tuple[SourceFile, Version]], now: int) -> SourceRoot:
    root = SourceRoot(source.title, str(path))
    keep = source.retention(path) if source.retention is not None else None
    if keep is not None:
        root.days, root.said_by = keep.days, keep.said_by
    try:
        for found in source.find(path):
            _count_file(root, look_at_file(source, found, known.get(str(found.path))), now)
    except OSError as failure:
        root.unreadable = f"{failure.filename or path}: {failure.strerror}"
    return root


def _count_file(root: SourceRoot, candidate: FileCandidate, now: int) -> None:
    """Add one file to the counts of its root. A file is archived when the next sync would not read it again."""
    root.files += 1
    info = candidate.stat
    leaves = info.st_mtime_ns // 1_000_000 + root.days * _DAY if root.said_by and info is not None else None
    is_leaving = leaves is not None and leaves - now < _SOON
    root.leaving += is_leaving
    if candidate.version is None or not candidate.version.id or not is_unchanged(candidate):
        root.behind += 1
        root.at_risk += is_leaving
        if leaves is not None:
            root.lost_first = min(root.lost_first or leaves, leaves)


def _note_drift(report: HealthReport, store: Store) -> None:
    doubts = [problem for problem in store.problems() if problem.kind in DOUBTS]
    if doubts:
        shown = "; ".join(problem.reason for problem in doubts[:_MOST_DOUBTS])
        more = f"; and {len(doubts) - _MOST_DOUBTS} more" if len(doubts) > _MOST_DOUBTS else ""
        report.note("readings", "warn", f"{len(doubts)} not sure: {shown}{more}", "`everturn show` marks the places")
    odd = [row for row in store.census() if row.disposition == "unknown"]
    if not odd:
        report.note("drift", "ok", "every record is of a known type")
        return
    shown = ", ".join(
        f"{row.type} × {row.n} (client {row.client or '?'})" for row in sorted(odd, key=lambda r: -r.n)[:8]
    )
    report.note(
        "drift", "warn", f"{sum(row.n for row in odd)} records of unknown types: {shown}",
        "they are kept, shown and searchable; a newer everturn may know them",
    )  # fmt: skip
