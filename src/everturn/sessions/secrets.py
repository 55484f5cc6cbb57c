"""Find the secrets of an archive without showing a byte of them, and make the cleaner of an archive.

`find_archive_secrets` scans the stored bytes themselves, so that nothing is missed because no reader made a message of
it, and then the facts of each session. Every hit has a kind and a keyed digest: equal secrets have equal digests, and
without the key nobody can test guesses. The key is made once per archive by the first command that writes (`make_key`);
in an archive without one, placeholders have no digest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from everturn.clock import new_id
from everturn.model.archive import MessageRow, Session, SessionText
from everturn.sessions.messages import Records, Sources
from everturn.store.contract import Store

if TYPE_CHECKING:  # the rules take a while to compile, and a sync only makes the key
    from everturn.secrets.redaction import Cleaner

_SETTING = "redaction_key"
_RANGE = 1 << 20
_LONGEST_KEY = 20_000  # bytes of a private key that is not split between two ranges
_FACTS = ("title", "summary", "workspace", "branch", "team", "agent_name", "slug")

#: Called with the number of bytes scanned so far.
Progress = Callable[[int], None]


class SecretPlace(Struct, frozen=True):
    """The position of a secret. `start` and `size` count bytes of the record; without a message, of the stored file."""

    kind: str
    digest: str
    session: Session
    turn: int | None  # None outside messages
    message: int | None
    field: str  # of the message; `record` for its other bytes; `file` outside messages; or a fact of the session
    start: int
    size: int


def archive_cleaner(store: Store) -> Cleaner:
    """Return the cleaner for text that leaves this archive. Writes nothing."""
    from everturn.secrets.redaction import Cleaner

    return Cleaner(store.setting(_SETTING).encode())


def make_key(store: Store) -> bytes:
    """Return the key of this archive; make one if there is none. Raises Busy."""
    key = store.setting(_SETTING)
    if key:
        return key.encode()
    with store.write():
        key = store.setting(_SETTING) or new_id() + new_id()  # another process may have been faster
        store.set_setting(_SETTING, key)
    return key.encode()


def find_archive_secrets(
    store: Store, sources: Sources, sessions: Iterable[Session], key: bytes, progress: Progress = lambda done: None
) -> Iterator[SecretPlace]:
    """Yield every secret, session by session. Bytes outside messages belong to the first session of their file."""
    done, seen = 0, set[int]()
    for session in sessions:
        scan = _SessionScan(store, sources, session, key)
        for size, places in scan.scan_records() if session.version in seen else scan.scan_chunks():
            yield from places
            done += size
            progress(done)
        yield from scan.scan_facts()
        seen.add(session.version)


_SearchedBytes = tuple[int, Iterator[SecretPlace]]  # number of bytes scanned, and the secrets in them


class _SessionScan:
    def __init__(self, store: Store, sources: Sources, session: Session, key: bytes) -> None:
        self._store, self._session, self._key = store, session, key
        self._records = Records(store, sources, session)
        inside = [session, *(one for one in store.sessions_in(session.version) if one.id != session.id)]
        rows = [row for one in inside for row in store.messages(one.id)]
        self._rows = sorted(rows, key=lambda row: row.start)
        self._starts = [row.start for row in self._rows]
        self._current = -1  # the message whose fields are loaded
        self._fields: dict[str, list[str]] = {}  # by digest

    def scan_chunks(self) -> Iterator[_SearchedBytes]:
        """Scan every stored byte of the file, in ranges of whole lines."""
        at, held, size = 0, list[bytes](), 0
        for chunk in self._store.chunks(self._session.version):
            held.append(self._store.read_chunk(chunk.digest)[: chunk.size])
            size += chunk.size
            if size >= _RANGE and b"\n" in held[-1]:
                data = b"".join(held)
                cut = _cut_position(data)
                yield cut, self._places(data[:cut], at)
                at, held, size = at + cut, [data[cut:]], size - cut
        yield size, self._places(b"".join(held), at)

    def scan_records(self) -> Iterator[_SearchedBytes]:
        """Scan the messages of the session only: its file was scanned before."""
        for row in self._rows:
            if row.session == self._session.id:
                yield row.size, self._places(self._records.record(row), row.start)

    def scan_facts(self) -> Iterator[SecretPlace]:
        """Scan the facts of the session."""
        text: SessionText = self._store.session(self._session.id)[1]
        for name in _FACTS:
            data = getattr(text, name).encode("utf-8", "surrogatepass")
            for kind, start, end, hashed in _secret_spans(data, self._key):
                yield SecretPlace(kind, hashed, self._session, None, None, name, start, end - start)

    def _places(self, data: bytes, at: int) -> Iterator[SecretPlace]:
        for kind, start, end, hashed in _secret_spans(data, self._key, raw=data.lstrip()[:1] in (b"{", b"[")):
            row = self._row(at + start)
            if row is None:
                yield SecretPlace(kind, hashed, self._session, None, None, "file", at + start, end - start)
            elif row.session == self._session.id:
                begin = at + start - row.start
                yield SecretPlace(
                    kind, hashed, self._session, row.turn, row.seq, self._field(row, hashed), begin, end - start
                )

    def _row(self, at: int) -> MessageRow | None:
        index = bisect_right(self._starts, at) - 1
        row = self._rows[index] if index >= 0 else None
        return row if row is not None and at < row.start + row.size else None

    def _field(self, row: MessageRow, hashed: str) -> str:
        """Return the field of a message that contains the secret; repeated secrets get their fields in order."""
        if self._current != row.seq:
            self._current, self._fields = row.seq, {}
            for block in self._records.message(row).blocks:
                for _, _, _, found in _secret_spans(block.text.encode("utf-8", "surrogatepass"), self._key):
                    self._fields.setdefault(found, []).append(block.field or "record")
        fields = self._fields.get(hashed)
        return fields.pop(0) if fields else "record"


def _secret_spans(data: bytes, key: bytes, raw: bool = False) -> Iterator[tuple[str, int, int, str]]:
    from everturn.secrets.redaction import digest, find_spans

    for kind, start, end in find_spans(data, raw):
        yield kind, start, end, digest(data[start:end], key)


def _cut_position(data: bytes) -> int:
    """Return where to cut: after a line, and not within a private key."""
    end = data.rfind(b"\n") + 1
    key = data.rfind(b"-----BEGIN ", max(0, end - _LONGEST_KEY), end)
    if key > 0 and data.find(b"-----END ", key, end) < 0:
        return data.rfind(b"\n", 0, key) + 1 or end
    return end
