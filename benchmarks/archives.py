"""An archive as it lies on the disk, looked at from outside: its rows, its bytes, and where a word is still to be found."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import apsw

from everturn.export.original import raw_bytes
from everturn.store.contract import Store
from everturn.store.raw import Packer

#: What a rebuild must make again, row for row.
DERIVED = (
    "session",
    "session_text",
    "turn",
    "step",
    "call",
    "message",
    "artifact",
    "edit",
    "link",
    "problem",
    "census",
)
_READ = 'SELECT "id","parsed","parser","state","lines","glued" FROM "version"'
#: Every word at every place, summed up per word: how segments of the index were merged does not show.
_WORDS = """
    SELECT "term", COUNT(*), SUM("doc"), SUM("offset"), SUM(("doc" * 31 + "offset" * 7 + length("col")) % 999983)
    FROM temp."words" GROUP BY "term" ORDER BY "term"
"""


def derived_rows(db: Path) -> dict[str, str]:
    """A digest of each derived table, of what the versions say about them, and of the index."""
    with closing(_open(db)) as connection:
        digests = {name: _digest(connection.execute(f'SELECT * FROM "{name}"')) for name in DERIVED}
        digests["version"] = _digest(connection.execute(_READ))
        connection.execute("CREATE VIRTUAL TABLE temp.\"words\" USING fts5vocab('main', 'fts', 'instance')")
        digests["index"] = _digest(connection.execute(_WORDS))
        return digests


def original(store: Store, version: int) -> bytes:
    """What `export --as raw` gives for a version."""
    return b"".join(raw_bytes(store, version))


def places_of(word: bytes, folder: Path, db: Path) -> list[str]:
    """Where a word is still to be found: in the bytes of a file, in packed bytes, or perhaps in pages given back."""
    found = [
        str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file() and _holds(path, word)
    ]
    with closing(_open(db)) as connection:
        packer = Packer()
        packed = connection.execute('SELECT "id","data" FROM "blob"')
        found += [f"packed bytes {number}" for number, data in packed if word in packer.unpack(data)]
        free = connection.pragma("freelist_count")
    return [*found, f"{free} free pages"] if free else found


def _open(db: Path) -> apsw.Connection:
    return apsw.Connection(str(db), flags=apsw.SQLITE_OPEN_READONLY)


def _holds(path: Path, word: bytes) -> bool:
    return any(word in piece for piece in _pieces(path, len(word)))


def _pieces(path: Path, overlap: int) -> Iterator[bytes]:
    before = b""
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            yield before + piece
            before = piece[-overlap:]


def _digest(rows: Iterable[object]) -> str:
    """Independent of the order in which the rows lie."""
    total = count = 0
    for row in rows:
        count += 1
        total += int.from_bytes(blake2b(repr(row).encode("utf-8", "surrogatepass"), digest_size=16).digest(), "big")
    return f"{count} rows, {total & (1 << 128) - 1:032x}"
