"""Encrypted database files: how they are recognised, and the connection that reads them.

Pages, write-ahead log and journals are encrypted with AEGIS-256, an authenticated cipher, by SQLite3 Multiple Ciphers, which
comes with the package `apsw-sqlite3mc`. Each file has a random salt in its first 16 bytes, in place of SQLite's own
mark. Temporary files do not leak: they stay in memory, except those of VACUUM, which are encrypted too.

A key has 256 bits. A passphrase becomes one through scrypt with the salt of the file, once per process.
"""

from __future__ import annotations

import os
from functools import lru_cache
from hashlib import scrypt
from pathlib import Path
from typing import NamedTuple

import apsw

from everturn.errors import EncryptedArchive, EverturnError, WrongKey
from everturn.store.key_source import key_sources

CIPHER = "aegis"
SALT_SIZE = 16
KEY_SIZE = 32
_PLAIN = b"SQLite format 3\0"
_HEAD = (
    24  # bytes that tell an encrypted file: the salt, then page size, versions and sizes of payloads as in any database
)
_RESERVED = 64  # bytes of a page for nonce and tag
_PAYLOADS = bytes((_RESERVED, 64, 32, 32))
_OPEN_TO_READ = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB
_SCRYPT = {"n": 1 << 15, "r": 8, "p": 1, "maxmem": 64 << 20, "dklen": KEY_SIZE}


class ArchiveKey(NamedTuple):
    """The key of a file, and the salt in its head."""

    key: bytes
    salt: bytes

    @property
    def text(self) -> str:
        """The key as SQLite3 Multiple Ciphers reads it."""
        return f"raw:{self.key.hex()}{self.salt.hex()}"


def is_available() -> bool:
    """Whether the installed SQLite can encrypt."""
    return hasattr(apsw, "mc_version")


def check_available() -> None:
    """Raise EverturnError where the installed SQLite cannot encrypt."""
    if not is_available():
        raise EverturnError(
            "the installed SQLite cannot decrypt: run `pip install --force-reinstall --no-deps apsw-sqlite3mc`"
        )


def is_encrypted(path: str | os.PathLike[str]) -> bool:
    """Whether a file is an encrypted database, by its head."""
    head = _read_head(path)
    return len(head) == _HEAD and head[:SALT_SIZE] != _PLAIN and head[20:24] == _PAYLOADS


@lru_cache(maxsize=32)
def derive_key(secret: str, salt: bytes) -> ArchiveKey:
    """Return the key for a file with this salt."""
    _salts[secret] = salt
    if len(secret) == 2 * KEY_SIZE:
        try:
            return ArchiveKey(bytes.fromhex(secret), salt)
        except ValueError:
            pass
    return ArchiveKey(scrypt(secret.encode("utf-8", "surrogatepass"), salt=salt, **_SCRYPT), salt)


def new_key(secret: str) -> ArchiveKey:
    """Return a key for a new file. Files of one process share a salt: to derive a key from a passphrase takes long."""
    return derive_key(secret, _salts.get(secret) or os.urandom(SALT_SIZE))


_salts: dict[str, bytes] = {}  # by secret, of the last file


def keys_for(path: Path) -> list[ArchiveKey | None]:
    """Return the keys to try on a file; None stands for no encryption. Raises EncryptedArchive without any."""
    head, sources = _read_head(path), key_sources()
    if not head:  # a new file
        return [None if sources.is_empty else new_key(sources.secret())]
    if not is_encrypted(path):
        return [None]
    check_available()
    if sources.is_empty:
        raise EncryptedArchive(str(path))
    salt = head[:SALT_SIZE]
    return [derive_key(sources.secret(number), salt) for number in range(len(sources.sources))]


def open_connection(
    name: str, flags: int, keys: list[ArchiveKey | None], busy_ms: int
) -> tuple[apsw.Connection, ArchiveKey | None]:
    """Open a database with the first key that fits. Raises WrongKey, apsw.Error."""
    for key in keys:
        connection = apsw.Connection(name, flags=flags, statementcachesize=256)
        try:
            connection.set_busy_timeout(busy_ms)
            if key is None or _is_unlocked(connection, key):
                return connection, key
        except BaseException:
            connection.close(True)
            raise
        connection.close(True)
    raise WrongKey(name, " and ".join(map(str, key_sources().sources)))


def _is_unlocked(connection: apsw.Connection, key: ArchiveKey) -> bool:
    check_available()
    connection.pragma("cipher", CIPHER)
    connection.pragma("key", key.text)
    try:
        connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall()
    except apsw.NotADBError:
        return False
    return True


def _read_head(path: str | os.PathLike[str]) -> bytes:
    """Return the first bytes of a file, read by SQLite itself.

    To close a file releases every POSIX lock that the process has on it: with `open` here, another connection of this
    process would lose its locks, and another process could delete the write-ahead log it is writing.
    """
    try:
        file = apsw.VFSFile(_plain_vfs(), os.path.abspath(path), [_OPEN_TO_READ, 0])
    except apsw.Error:
        return b""
    try:
        return file.xRead(_HEAD, 0)
    except apsw.Error:
        return b""
    finally:
        file.xClose()


def _plain_vfs() -> str:
    """Return the name of the VFS that decrypts nothing."""
    return "win32" if os.name == "nt" else "unix"
