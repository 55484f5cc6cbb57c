"""`everturn push`: what of this machine's archive goes to the team's server, masked before it leaves.

The user's capture rules decide: nothing of a workspace in mode `off` or `structure` is pushed. Secrets are masked unless the
user pushes in mode `full`, and that only where the rules say `full`. Masking works on whole lines, so pieces end at line ends;
a line that is still being written waits for the next push. The server says how far it is, so an interrupted push continues there.

What was forgotten here is forgotten there: whole sessions by their id, and single messages by pushing their file again.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import msgspec

from everturn.capture.policy import MODES, Policy
from everturn.errors import EverturnError, UsageError
from everturn.model.archive import SourceFile, Version
from everturn.model.conversation import prepared
from everturn.model.vocabulary import BACKUP
from everturn.secrets.redaction import redact_text
from everturn.secrets.rules import open_key_start
from everturn.sources.contract import all_sources
from everturn.store.contract import Store
from everturn.team.client import TeamClient
from everturn.team.intake import LONGEST, FileName, Piece, Place, SessionKey

SLICE = 1 << 20
_HEAD = 64 << 10  # the first line, up to this many bytes, tells that a version is still the same
_REMOTE = re.compile(r"(?:[a-z+]+://)?(?:[^@/]+@)?([^/:]+)[:/]+(.+?)(?:\.git)?/*$")

Progress = Callable[[int, int, str], None]


@dataclass
class PushReport:
    """Counts what a push did."""

    files: int = 0
    pushed: int = 0  # versions with new bytes
    same: int = 0
    left_out: int = 0  # by the capture rules
    erased: int = 0  # files erased on the server, because their sessions were forgotten here
    bytes: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)  # path and reason


@dataclass(frozen=True)
class Push:
    """One push of one machine."""

    store: Store
    client: TeamClient
    policy: Policy
    machine: str
    is_full: bool = False
    again: bool = False  # push everything anew
    progress: Progress = lambda done, total, path: None

    def run(self) -> PushReport:
        """Push what is new. Raises EverturnError if the server cannot be reached; run it again to continue."""
        report = PushReport(erased=self._erase_forgotten())
        places = self._known_places()
        files = [file for file, _ in self.store.files(self.machine) if file.kind not in ("container", BACKUP)]
        for number, file in enumerate(files):
            self.progress(number, len(files), file.path)
            report.files += 1
            self._push_file(file, places, report)
        self.progress(len(files), len(files), "")
        return report

    def _erase_forgotten(self) -> int:
        keys = [SessionKey(row.agent, row.key) for row in self.store.tombstones() if row.kind == "session"]
        if not keys:
            return 0
        return int(self.client.post("/v1/push/erasures", msgspec.msgpack.encode(keys)).get("erased", 0))

    def _known_places(self) -> dict[tuple[str, int], Place]:
        found = msgspec.convert(self.client.get("/v1/push", machine=self.machine)["items"], prepared(list[Place]))
        return {(place.path, place.number): place for place in found}

    def _push_file(self, file: SourceFile, places: dict[tuple[str, int], Place], report: PushReport) -> None:
        path, versions = redact_text(file.path), self.store.versions(file.id)
        known = {
            version.number: places[path, version.number] for version in versions if (path, version.number) in places
        }
        is_changed = any(
            version.erased != known[version.number].erased for version in versions if version.number in known
        )
        if known and (is_changed or self.again):
            self.client.post("/v1/push/drop", msgspec.msgpack.encode(FileName(self.machine, path)))
            known = {}
        for version in versions:
            workspace = self._workspace(version)
            mode = self._mode(file, version, workspace)
            if mode is None:
                report.left_out += 1
                continue
            try:
                sent = self._push_version(file, version, mode, workspace, known.get(version.number))
            except UsageError as refused:  # this file; the others may be pushed
                report.failed.append((file.path, str(refused)))
                return
            report.bytes += sent
            report.pushed += sent > 0
            report.same += sent == 0

    def _workspace(self, version: Version) -> str:
        rows = self.store.sessions_in(version.id)
        return next((text for row in rows if (text := self.store.session(row.id)[1].workspace)), "")

    def _mode(self, file: SourceFile, version: Version, workspace: str) -> str | None:
        """Return the mode to push a version in; None: not at all."""
        source = all_sources().get(file.format)
        allowed = self.policy.decide(workspace, file.path, source is not None and source.is_placeless).mode
        least = min(allowed, version.mode, key=MODES.index)
        if source is None or least not in ("full", "redacted"):
            return None
        return "full" if least == "full" and self.is_full else "redacted"

    def _push_version(self, file: SourceFile, version: Version, mode: str, workspace: str, known: Place | None) -> int:
        offset, sent = known.offset if known else 0, 0
        head = sha256(self.store.read_raw(version.id, 0, _HEAD).partition(b"\n")[0]).digest()
        name = FileName(self.machine, redact_text(file.path), version.number)
        for until, raw in self._pieces(version, offset, mode):
            data = raw if mode == "full" else self.policy.redact(raw)
            piece = Piece(
                name, file.format, file.kind, file.native_id, file.parent, mode, head, version.erased,
                repository_identity(workspace), offset, until, sha256(data).digest(), data,
            )  # fmt: skip
            answer = self.client.post("/v1/push/piece", msgspec.msgpack.encode(piece))
            reached = msgspec.convert(answer, prepared(Place)).offset
            if reached != until:
                raise EverturnError(f"the server is at byte {reached:,} of this file, not at {until:,}; push it again")
            offset, sent = until, sent + len(data)
        return sent

    def _pieces(self, version: Version, offset: int, mode: str) -> Iterator[tuple[int, bytes]]:
        """Yield the end and the bytes of each piece: whole lines, except of a file that is one line, and whole keys."""
        while offset < version.size:
            size = SLICE
            data = self.store.read_raw(version.id, offset, size)
            while b"\n" not in data and offset + len(data) < version.size and size < LONGEST:
                size *= 2
                data = self.store.read_raw(version.id, offset, size)
            end = data.rfind(b"\n") + 1
            if not end and (offset or offset + len(data) < version.size):
                return  # the rest of a line that is still being written, or one that is too long
            data = data[:end] if end else data
            if mode != "full":
                data = data[: open_key_start(data)]
                if not data:
                    return  # a private key that is still being written
            yield offset + len(data), data
            offset += len(data)


@lru_cache(1024)
def repository_identity(folder: str) -> str:
    """Return what identifies a folder's repository on every machine: host and path of its remote; "" without one."""
    if not folder or not Path(folder).is_dir():
        return ""
    command = ["git", "-C", folder, "remote", "get-url", "origin"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _REMOTE.fullmatch(done.stdout.strip()) if done.returncode == 0 else None
    return f"{found[1].lower()}/{found[2]}" if found else ""
