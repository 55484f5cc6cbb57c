"""Encrypted database files: how they are recognised, and the connection that reads them.

Pages, write-ahead log and journals are encrypted with AEGIS-256, an authenticated cipher, by SQLite3 Multiple Ciphers, which
comes with the package `apsw-sqlite3mc`. Each file has a random salt in its first 16 bytes, in place of SQLite's own
mark. Temporary files do not leak: they stay in memory, except those of VACUUM, which are encrypted too.

A key has 256 bits. A passphrase becomes one through scrypt with the salt of the file, once per process.

Where the key of an encrypted archive comes from: `encryption.key` in the config file, or EVERTURN_KEY.

    file:PATH         a file that its owner alone may read
    command:LINE      what a command prints, such as a password manager's
    keyring:NAME      the system keyring, under the service `everturn` (needs `pip install 'everturn[encryption]'`)
    passphrase        asked for on the terminal, or EVERTURN_PASSPHRASE

A secret of 64 hexadecimal digits is the key itself. Any other secret is a passphrase, from which `store.cipher` derives
the key. A process has one config file, so its sources are set once for the process, by whoever loads the settings. A secret
is read when the first encrypted file is opened. The config file alone names commands to run: an archive of
somebody else cannot.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import lru_cache
from hashlib import scrypt
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from everturn.errors import BadConfig, EncryptedArchive, EverturnError, UsageError, WrongKey

if TYPE_CHECKING:
    import apsw  # loaded with the first archive: the settings, which set the sources of keys, are read by every command

CIPHER = "aegis"
SALT_SIZE = 16
KEY_SIZE = 32
#: Prepared statements that a connection keeps; the most that apsw allows. Every row of a list of rows counts as a use, so that long
#: lists displace the others, and to compile one costs many times what it takes to run.
STATEMENTS = 512
_PLAIN = b"SQLite format 3\0"
_HEAD = (
    24  # bytes that tell an encrypted file: the salt, then page size, versions and sizes of payloads as in any database
)
_RESERVED = 64  # bytes of a page for nonce and tag
_PAYLOADS = bytes((_RESERVED, 64, 32, 32))
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
    import apsw

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
    import apsw

    for key in keys:
        connection = apsw.Connection(name, flags=flags, statementcachesize=STATEMENTS)
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
    import apsw

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
    import apsw

    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB
    try:
        file = apsw.VFSFile(_plain_vfs(), os.path.abspath(path), [flags, 0])
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


# --- Where the key of an encrypted archive comes from: `encryption.key` in the config file, or EVERTURN_KEY ---
SERVICE = "everturn"  # in the system keyring
SETTING = "encryption.key"
_COMMAND_SECONDS = 60
_LARGEST = 4096  # bytes of a secret

#: Asks for a passphrase. Raises EverturnError where nobody can be asked.
Ask = Callable[[], str]


class KeySource(NamedTuple):
    """A parsed source. Its text holds no secret."""

    kind: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.name else self.kind


def parse_key_source(text: str) -> KeySource:
    """Parse a source. Raises BadConfig."""
    kind, _, name = text.strip().partition(":")
    is_known = kind in ("file", "command", "keyring") and bool(name)
    if not is_known and (kind, name) != ("passphrase", ""):
        raise BadConfig(SETTING, f"{text!r} is none of file:PATH, command:LINE, keyring:NAME and passphrase")
    return KeySource(kind, name)


def read_secret(source: KeySource, ask: Ask) -> str:
    """Return the secret of a source. Raises EverturnError if there is none."""
    secret = _read_file(Path(source.name)) if source.kind == "file" else _READERS[source.kind](source.name, ask)
    if not secret:
        raise EverturnError(f"{source} holds no key; name another with `everturn config set {SETTING} SOURCE`")
    return secret


def make_secret(source: KeySource, ask: Ask) -> str:
    """Return the secret of a source; create a random key where a file or keyring entry does not exist."""
    if source.kind == "file" and not Path(source.name).exists():
        return _new_file(Path(source.name))
    if source.kind == "keyring" and not _read_keyring(source.name, ask):
        secret = _random_key()
        _keyring().set_password(SERVICE, source.name, secret)
        return secret
    return read_secret(source, ask)


def _read_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_LARGEST + 1)
    except OSError as failure:
        raise EverturnError(f"the key file {path} cannot be read: {failure.strerror}") from None
    if os.name != "nt" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise EverturnError(f"the key file {path} can be read by others; make it private with chmod 600")
    return _one_line(data, str(path))


def _random_key() -> str:
    return os.urandom(32).hex()


def _new_file(path: Path) -> str:
    secret = _random_key()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(f"{secret}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as failure:
        raise UsageError(f"the key file {path} cannot be written: {failure.strerror}; name another") from None
    return secret


def _run_command(line: str, ask: Ask) -> str:
    import shlex
    import subprocess

    try:
        words = shlex.split(line)
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_COMMAND_SECONDS, check=False
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as failure:
        why = f"does not end within {_COMMAND_SECONDS} s" if isinstance(failure, subprocess.TimeoutExpired) else failure
        raise EverturnError(f"the key command {line!r} cannot be run: {why}") from None
    if done.returncode:
        raise EverturnError(f"the key command {line!r} failed with exit code {done.returncode}")
    return _one_line(done.stdout, f"the output of {line!r}")


def _one_line(data: bytes, what: str) -> str:
    """Return the first line, which must be text of a reasonable length."""
    line = data.strip().partition(b"\n")[0].strip()
    try:
        if len(data) <= _LARGEST:
            return line.decode("utf-8")
    except UnicodeDecodeError:
        pass
    raise EverturnError(f"{what} is no key: expected one line of text; `everturn encrypt --help` shows how to make one")


def _read_keyring(name: str, ask: Ask) -> str:
    try:
        return str(_keyring().get_password(SERVICE, name) or "")
    except EverturnError:
        raise
    except Exception as failure:  # every backend has errors of its own
        raise EverturnError(f"the system keyring cannot be read: {failure}; unlock it, or use a key file") from None


def _keyring() -> Any:
    try:
        import keyring
    except ImportError:
        raise EverturnError("the system keyring needs one more library: pip install 'everturn[encryption]'") from None
    return keyring


_READERS: dict[str, Callable[[str, Ask], str]] = {
    "command": _run_command,
    "keyring": _read_keyring,
    "passphrase": lambda name, ask: ask(),
}


# --- the sources of this process ---
def nobody() -> str:
    """Refuse to ask for a passphrase."""
    raise EverturnError("the archive is encrypted with a passphrase; set EVERTURN_PASSPHRASE")


class KeySources:
    """The sources of the settings, the one in use first. `previous` is for files that `rekey` has not reached."""

    def __init__(self, key: str = "", previous: str = "", ask: Ask = nobody) -> None:
        self.sources = [parse_key_source(text) for text in (key, previous) if text]
        self.ask = ask
        self._secrets: dict[int, str] = {}

    @property
    def is_empty(self) -> bool:
        return not self.sources

    def secret(self, number: int = 0) -> str:
        """Return the secret of a source, read once."""
        if number not in self._secrets:
            self._secrets[number] = read_secret(self.sources[number], self.ask)
        return self._secrets[number]

    def add(self, source: KeySource, secret: str) -> None:
        """Add a source whose secret was read already."""
        self._secrets[len(self.sources)] = secret
        self.sources.append(source)


_in_use: dict[str, KeySources | Callable[[], KeySources]] = {}


def use_key_sources(sources: KeySources | Callable[[], KeySources], only_if_unset: bool = False) -> None:
    """Open encrypted files with these from now on. A function is called when the first one is needed."""
    if not (only_if_unset and _in_use):
        _in_use["sources"] = sources


def key_sources() -> KeySources:
    """Return the sources in use."""
    found = _in_use.get("sources", KeySources())
    if not isinstance(found, KeySources):
        found = _in_use["sources"] = found()
    return found
