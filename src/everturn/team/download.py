"""`everturn pull`: one's own sessions of other machines, from the team's server into this machine's archive.

Bytes are copied as they were pushed, and rows are derived here, by the same code as everywhere. A file that has grown is
continued. One that was pushed anew, because words in it were forgotten, replaces the earlier copy. Sessions that were forgotten
here are not brought back, also not as messages of another one. No reader opens a pulled path: it belongs to another machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from everturn.capture.file_reader import UNFINISHED
from everturn.capture.policy import MODES, Policy
from everturn.capture.writer import ArchiveWriter, derive_pending
from everturn.errors import EverturnError, NothingFound
from everturn.model.archive import SourceFile, Version
from everturn.model.conversation import prepared
from everturn.sources.contract import Source, all_sources
from everturn.store.contract import Store

if TYPE_CHECKING:
    from everturn.store.people import Caller
    from everturn.team.client import TeamClient

SLICE = 1 << 20
_PULLED = "pulled:"  # before every stored path
_PUSHED = "pushed:"  # the same on the server

Progress = Callable[[int, int, str], None]


class PullVersion(Struct, frozen=True):
    """A version of a file on the server."""

    number: int
    mode: str
    size: int
    head: bytes
    erased: int


class PullFile(Struct, frozen=True):
    """A file of the caller on the server."""

    source: int
    machine: str
    path: str
    format: str
    kind: str
    native_id: str
    parent: str
    workspace: str
    versions: list[PullVersion]


# --- the server ---


def own_files(store: Store, caller: Caller) -> list[PullFile]:
    """Return the caller's own files, not those that others share."""
    return [_describe_file(store, file) for file, _ in store.files() if file.owner == caller.name]


def _describe_file(store: Store, file: SourceFile) -> PullFile:
    versions = store.versions(file.id)
    rows = [row for one in versions for row in store.sessions_in(one.id)]
    workspace = next((text.workspace for _, text in store.sessions_at([row.id for row in rows]) if text.workspace), "")
    return PullFile(
        file.id, file.machine.partition("/")[2], file.path.removeprefix(_PUSHED), file.format, file.kind, file.native_id,
        file.parent, workspace, [PullVersion(one.number, one.mode, one.size, one.head, one.erased) for one in versions],
    )  # fmt: skip


def own_bytes(store: Store, caller: Caller, source: int, number: int, offset: int) -> bytes:
    """Return a slice of a version of an own file. Raises NothingFound for one of somebody else, as if it did not exist."""
    nowhere = NothingFound("you have no such file here; run `everturn pull` again")
    try:
        file = store.file_by_id(source)[0]
    except NothingFound:
        raise nowhere from None
    version = next((one for one in store.versions(source) if one.number == number), None)
    if file.owner != caller.name or version is None:
        raise nowhere
    return store.read_raw(version.id, offset, SLICE)


# --- the other machine ---


@dataclass
class PullReport:
    """Counts what a pull did."""

    files: int = 0
    pulled: int = 0  # versions with new bytes
    same: int = 0
    left_out: int = 0  # by the capture rules
    forgotten: int = 0
    bytes: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)  # path and reason


@dataclass(frozen=True)
class Pull:
    """One pull into the archive of `writer`."""

    writer: ArchiveWriter
    client: TeamClient
    policy: Policy
    machines: tuple[str, ...] = ()  # only these
    progress: Progress = lambda done, total, path: None

    def run(self) -> PullReport:
        """Pull what is new. Raises EverturnError if the server cannot be reached; run it again to continue."""
        report = PullReport()
        listed = self.client.get_bytes("/v1/pull")
        files = [
            file for file in msgspec.msgpack.decode(listed, type=prepared(list[PullFile])) if self._is_wanted(file)
        ]
        for number, file in enumerate(files):
            self.progress(number, len(files), file.path)
            report.files += 1
            source = all_sources().get(file.format)
            if {(file.format, file.native_id), (file.format, file.parent)} & self.writer.buried_sessions:
                report.forgotten += 1
            elif source is None:
                report.failed.append((file.path, f"this everturn does not read the format {file.format!r}; upgrade it"))
            elif not self._is_allowed(file, source):
                report.left_out += 1
            else:
                self._pull_file(file, source, report)
        self.progress(len(files), len(files), "")
        return report

    def _is_wanted(self, file: PullFile) -> bool:
        return file.machine != self.writer.machine and (not self.machines or file.machine in self.machines)

    def _is_allowed(self, file: PullFile, source: Source) -> bool:
        """Whether the rules of this machine allow the form in which a file was pushed."""
        mode = self.policy.decide(file.workspace, file.path, source.is_placeless).mode
        return mode != "off" and all(MODES.index(one.mode) <= MODES.index(mode) for one in file.versions)

    def _pull_file(self, file: PullFile, source: Source, report: PullReport) -> None:
        store = self.writer.store
        row = self._local_file(file)
        for theirs in file.versions:
            mine = self._local_version(row, theirs)
            before = mine.size
            while mine.size < theirs.size:
                data = self.client.get_bytes(
                    "/v1/pull/bytes", source=file.source, number=theirs.number, offset=mine.size
                )
                if not data:
                    raise EverturnError(f"the server sends no more of {file.path}; run `everturn pull` again")
                with store.write():
                    store.move_cursor(
                        mine.id, mine.offset, offset=mine.size + len(data), size=mine.size + len(data), parser=UNFINISHED,
                        changed_at=self.writer.now,
                    )  # fmt: skip
                    store.append_raw(mine.id, mine.size, data)
                mine = store.version(mine.id)
            derive_pending(self.writer, source, row, mine)
            if self._holds_forgotten(mine):
                with store.write():
                    store.delete_file(row.id)
                report.forgotten += 1
                return
            report.bytes += mine.size - before
            report.pulled += mine.size > before
            report.same += mine.size == before

    def _local_file(self, file: PullFile) -> SourceFile:
        """Return the row of a file; an earlier copy in which words were forgotten since is deleted first."""
        store, path = self.writer.store, _PULLED + file.path
        found = store.file(file.machine, path)
        if found is not None:
            theirs = {one.number: (one.mode, one.head, one.erased) for one in file.versions}
            mine = {one.number: (one.mode, one.head, one.erased) for one in store.versions(found[0].id)}
            if all(theirs.get(number) == facts for number, facts in mine.items()):
                return found[0]
        made = SourceFile(
            0, file.format, file.machine, self.writer.owner, path, file.kind, file.native_id, file.parent,
            file.versions[-1].mode if file.versions else "redacted",
        )  # fmt: skip
        with store.write():
            if found is not None:
                store.delete_file(found[0].id)
            made.id = store.add_file(made)
        return made

    def _local_version(self, file: SourceFile, theirs: PullVersion) -> Version:
        store = self.writer.store
        for version in store.versions(file.id):
            if version.number == theirs.number:
                return version
        made = Version(
            0, file.id, theirs.number, "first" if theirs.number == 1 else "rewritten", theirs.mode, head=theirs.head,
            parser=UNFINISHED, opened_at=self.writer.now, changed_at=self.writer.now, erased=theirs.erased,
        )  # fmt: skip
        with store.write():
            made.id = store.add_version(made)
        return made

    def _holds_forgotten(self, version: Version) -> bool:
        """Whether a version holds a session or a message that was forgotten on this machine."""
        store, writer = self.writer.store, self.writer
        for row in store.sessions_in(version.id):
            if {(row.agent, row.native_id), (row.agent, row.parent)} & writer.buried_sessions:
                return True
            if writer.buried_messages and any(
                message.fingerprint in writer.buried_messages for message in store.messages(row.id)
            ):
                return True
        return False
