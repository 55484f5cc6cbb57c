"""A disk that fails or lies, between SQLite and the real one: works wherever apsw does, without any privilege.

`Disk` counts every write and every sync of the archive and of its log. It can kill the process at one of them, let one
fail, be full from one on, or note all of them, so that `images` can put together what a power failure may leave.
SQLite cannot share its log through a disk of ours: a connection to it has the archive for itself.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from typing import Any

import apsw

NAME = "everturn-shim"
_BASE = "win32" if os.name == "nt" else "unix"


@dataclass(frozen=True)
class Op:
    """One thing that was done to a file. Of a sync, and of the mark that something was acknowledged, there is no data."""

    kind: str  # write | sync | cut | acked
    file: str = ""
    at: int = 0
    data: bytes = b""


@dataclass
class Disk:
    """What is to happen, and what has. Numbers begin with 1; 0 is never."""

    kill: int = 0  # at this write, sync or cut
    failing_sync: int = 0
    full_from: int = 0  # writes from this one on find no room
    noting: bool = False
    ops: list[Op] = field(default_factory=list)
    done: int = 0
    writes: int = 0
    syncs: int = 0

    def before(self, kind: str, file: str, at: int = 0, data: bytes = b"") -> None:
        """Count, note, and strike."""
        self.done += 1
        if self.done == self.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "write":
            self.writes += 1
            if self.full_from and self.writes >= self.full_from:
                raise apsw.FullError("no room")
        elif kind == "sync":
            self.syncs += 1
            if self.syncs == self.failing_sync:
                raise apsw.IOError("the sync failed")
        if self.noting:
            self.ops.append(Op(kind, file, at, bytes(data)))

    def acked(self, lines: bytes) -> None:
        """Note that something was acknowledged."""
        self.ops.append(Op("acked", data=lines))


class Shim(apsw.VFS):
    """Takes the place of the real disk for every connection made from now on, until it is closed."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        super().__init__(NAME, _BASE, makedefault=True)
        apsw.connection_hooks.append(_alone)

    def xOpen(self, name: Any, flags: list[int]) -> Any:
        """A file of ours for the archive and its log; scratch files are nobody's concern."""
        path = name.filename() if hasattr(name, "filename") else name
        if not path:
            return apsw.VFSFile(_BASE, name, flags)
        return _File(self.disk, name, str(path), flags)

    def close(self) -> None:
        """Give the real disk back."""
        apsw.connection_hooks.remove(_alone)
        self.unregister()


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, path: str, flags: list[int]) -> None:
        self._disk, self._path = disk, path
        super().__init__(_BASE, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.before("write", self._path, offset, data)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        self._disk.before("sync", self._path)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        self._disk.before("cut", self._path, size)
        super().xTruncate(size)


def _alone(connection: apsw.Connection) -> None:
    connection.pragma("locking_mode", "exclusive")
