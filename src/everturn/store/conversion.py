"""Rewrites a database file with another key, or without one: `encrypt`, `decrypt` and `rekey`.

The new file is written beside the old one, checked, synced, and renamed over it. A process that is killed at any point
leaves the old file or the new one, whole. The old file is locked all the time, so that nobody writes into it meanwhile. Then its bytes
are overwritten: they must not stay readable on the disk, and a process that waits for the lock must not write
into a file that has no name any more.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import apsw

from everturn.errors import Busy, EverturnError, NoSpace, NotAnArchive
from everturn.store.cipher import CIPHER, ArchiveKey, check_available, derive_key, keys_for, new_key
from everturn.store.sqlite import SqliteDriver, connect

PART = ".converted"  # the end of the name of a file that is not complete
_PIECE = bytes(1 << 20)


def convert_file(path: Path, secret: str | None) -> bool:
    """Rewrite a database with this secret, or without encryption. Return False if it is so already.

    Raises Busy while another process has it open, WrongKey, NoSpace, NotAnArchive.
    """
    path = path.resolve()
    url = str(path)
    check_available()
    part = path.with_name(path.name + PART)
    _remove(part)
    driver = connect(_uri(path), url, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI, keys_for(path))
    try:
        if _is_done(driver, secret):
            return False
        size = path.stat().st_size
        if shutil.disk_usage(path.parent).free < size:
            raise NoSpace(url, f"this needs {size // 1_000_000 + 1} MB of free space beside it")
        _lock(driver)
        key = None if secret is None else new_key(secret)
        _write_copy(driver, part, key)
        _swap(driver, part, path)
    finally:
        driver.close()
        _remove(part)
    return True


def _is_done(driver: SqliteDriver, secret: str | None) -> bool:
    if secret is None or driver.key is None:
        return secret is None and driver.key is None
    return derive_key(secret, driver.key.salt) == driver.key


def _lock(driver: SqliteDriver) -> None:
    """Lock everybody out. The write-ahead log is copied into the file and deleted first."""
    driver.one("PRAGMA locking_mode=EXCLUSIVE")
    if driver.one("PRAGMA journal_mode=DELETE") != ("delete",):
        raise Busy(driver.url)
    driver.run("BEGIN EXCLUSIVE")
    driver.run("COMMIT")  # the lock stays
    if driver.one("PRAGMA journal_mode") != ("delete",):
        raise Busy(driver.url)


def _write_copy(driver: SqliteDriver, part: Path, key: ArchiveKey | None) -> None:
    marks = [driver.one(f"PRAGMA {name}") for name in _MARKS]
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    target = f"{_uri(part)}?cipher={CIPHER}&key={key.text}" if key else f"{_uri(part)}?key="
    driver.run("VACUUM INTO ?", (target,))
    copy = connect(str(part), str(part), apsw.SQLITE_OPEN_READWRITE, [key])
    try:
        is_whole = copy.all("PRAGMA integrity_check(1)") == [("ok",)]
        if not is_whole or [copy.one(f"PRAGMA {name}") for name in _MARKS] != marks:
            raise NotAnArchive(str(part), "the copy is not whole")
    finally:
        copy.close()
    _sync(part)


_MARKS = ("application_id", "user_version")


def _swap(driver: SqliteDriver, part: Path, path: Path) -> None:
    if os.name == "nt":  # an open file cannot be replaced
        driver.close()
        os.replace(part, path)
        return
    old = os.open(path, os.O_RDWR)
    try:
        info = os.fstat(old)
        os.replace(part, path)
        _sync(path.parent)
        if info.st_nlink == 1:  # else it has another name, and is somebody's copy
            _overwrite(old, info.st_size)
        driver.close()  # before `old`: closing a file ends the locks that the process has on it
    finally:
        os.close(old)


def _overwrite(file: int, size: int) -> None:
    with suppress(OSError):  # a file system that cannot do this has no name for it any more either
        for start in range(0, size, len(_PIECE)):
            os.pwrite(file, _PIECE[: size - start], start)
        os.fsync(file)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as failure:
        raise EverturnError(f"{path} cannot be synced: {failure.strerror}; check the disk") from failure
    finally:
        os.close(descriptor)


def _remove(part: Path) -> None:
    for name in (part.name, f"{part.name}-journal", f"{part.name}-wal", f"{part.name}-shm"):
        part.with_name(name).unlink(missing_ok=True)


def _uri(path: Path) -> str:
    return f"file:{quote(str(path))}"
