"""The raw layer: source files, their versions, and every byte of each version in chunks found by their SHA-256.

Chunks hold at most 256 kB. The last one is replaced by a longer one as long as it is small; the others never change.
Bytes that several chunks have in common (versions of one file, copies of a file) are stored once and go when the last
chunk that names them goes.

How chunks of bytes are kept: zstd where that is smaller, else as they are. The first byte says which.

One `Packer` for each store: the compressor inside is used again and again and does not belong to two threads.
"""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from everturn.errors import Conflict, NotAnArchive, NothingFound
from everturn.model.archive import Chunk, SourceFile, Version
from everturn.store.sql import CHUNKS, FILES, VERSIONS, Driver, Row

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Bytes = bytes | bytearray | memoryview

_PLAIN = b"\x00"
_ZSTD = b"\x01"
_LEVEL = 3


class Packer:
    """Packs and unpacks."""

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(level=_LEVEL)

    def pack(self, data: Bytes) -> bytes:
        """The bytes as they are stored."""
        packed: bytes = self._compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)
        if len(packed) < len(data):
            return _ZSTD + packed
        return _PLAIN + bytes(data)

    def unpack(self, stored: bytes) -> bytes:
        """The bytes as they were. Raises ValueError when they cannot be had."""
        mark, rest = stored[:1], memoryview(stored)[1:]
        if mark == _PLAIN:
            return bytes(rest)
        if mark != _ZSTD:
            raise ValueError("unknown packing")
        try:
            data: bytes = zstd.decompress(rest)
        except zstd.ZstdError as failure:
            raise ValueError(str(failure)) from failure
        return data


CHUNK = 256 * 1024  # longest chunk
SEALED = 64 * 1024  # a last chunk shorter than this is replaced when more bytes come
_RECENT = 16  # unpacked chunks held in memory

_FILES_AND_VERSIONS = f'SELECT {FILES.fields("f")},{VERSIONS.fields("v")} FROM "source_file" f LEFT JOIN "version" v ON v."id"=f."version"'
_LONE = re.compile("[\ud800-\udfff]")
_STAND_IN = re.compile("[\U0010f000-\U0010f7ff]")
_SHIFT = 0x10F000 - 0xD800

_RELEASE = 'DELETE FROM "blob" WHERE "digest"=? AND NOT EXISTS (SELECT 1 FROM "chunk" WHERE "digest"=?)'


class RawStore:
    """The raw part of a store over a driver."""

    driver: Driver
    packer: Packer
    _recent: OrderedDict[bytes, bytes]

    # files and versions -------------------------------------------------------------------------------------------
    def files(self, machine: str = "") -> list[tuple[SourceFile, Version]]:
        """Every source file with its current version."""
        where, params = (' WHERE f."machine"=?', (machine,)) if machine else ("", ())
        return [
            _file_and_version(row) for row in self.driver.all(f'{_FILES_AND_VERSIONS}{where} ORDER BY f."id"', params)
        ]

    def file(self, machine: str, path: str) -> tuple[SourceFile, Version] | None:
        """A source file by its place."""
        row = self.driver.one(
            f'{_FILES_AND_VERSIONS} WHERE f."machine"=? AND f."path"=?', (machine, _storable_path(path))
        )
        return None if row is None else _file_and_version(row)

    def file_by_id(self, source: int) -> tuple[SourceFile, Version]:
        """A source file by its id."""
        row = self.driver.one(f'{_FILES_AND_VERSIONS} WHERE f."id"=?', (source,))
        if row is None:
            raise NothingFound(f"no source file {source} in the archive; `everturn sources` lists them")
        return _file_and_version(row)

    def add_file(self, row: SourceFile) -> int:
        """Enter a source file. Raises Conflict when its place is taken: another process found it too."""
        sql = f'{FILES.insert} ON CONFLICT ("machine","path") DO NOTHING RETURNING "id"'
        made = self.driver.one(sql, FILES.values(replace(row, path=_storable_path(row.path))))
        if made is None:
            raise Conflict(row.path)
        return int(made[0])

    def set_file(self, source: int, **changes: Any) -> None:
        """Change columns of a source file."""
        if "path" in changes:
            changes["path"] = _storable_path(changes["path"])
        self.driver.run(f'{FILES.update(changes)} WHERE "id"=?', (*changes.values(), source))

    def versions(self, source: int) -> list[Version]:
        """Every version of a source, oldest first."""
        return VERSIONS.read(self.driver.all(f'{VERSIONS.select} WHERE "source"=? ORDER BY "number"', (source,)))

    def version(self, version: int) -> Version:
        """One version."""
        row = self.driver.one(f'{VERSIONS.select} WHERE "id"=?', (version,))
        if row is None:
            raise NothingFound(f"no version {version} in the archive; `everturn sources` lists what is there")
        return Version(*row)

    def add_version(self, row: Version) -> int:
        """Enter a version and make it the current one; sessions of older ones are superseded."""
        made = self.driver.insert(VERSIONS.insert, VERSIONS.values(row))
        self.driver.run('UPDATE "source_file" SET "version"=? WHERE "id"=?', (made, row.source))
        self.driver.run(
            'UPDATE "session" SET "state"=? WHERE "version" IN (SELECT "id" FROM "version" WHERE "source"=? AND "id"<>?)',
            ("superseded", row.source, made),
        )
        return made

    def set_version(self, version: int, **changes: Any) -> None:
        """Change columns of a version."""
        self.driver.run(f'{VERSIONS.update(changes)} WHERE "id"=?', (*changes.values(), version))

    def move_cursor(self, version: int, offset: int, /, **changes: Any) -> None:
        """Change the row if its offset is still `offset`, else raise Conflict."""
        sql = f'{VERSIONS.update(changes)} WHERE "id"=? AND "offset"=?'
        if self.driver.run(sql, (*changes.values(), version, offset)) != 1:
            raise Conflict(f"the place reached in source version {version}")

    # bytes --------------------------------------------------------------------------------------------------------
    def append_raw(self, version: int, at: int, data: Bytes) -> None:
        """Store `data` at stored offset `at`, which is the end. The last chunk is replaced until it is big enough."""
        last = self._last_chunk(version)
        if at != (last.start + last.size if last else 0):
            raise Conflict(f"the end of source version {version}")
        rest = memoryview(data)
        if last is not None and last.size < SEALED and rest:
            taken = rest[: CHUNK - last.size]
            self._replace(last, self._read_recent_chunk(last.digest) + taken)
            at, rest = at + len(taken), rest[len(taken) :]
        for first in range(0, len(rest), CHUNK):
            piece = rest[first : first + CHUNK]
            self.driver.run(CHUNKS.insert, (version, at + first, len(piece), self._put(piece)))

    def share_raw(self, old: int, new: int, size: int) -> int:
        """Let `new` begin with the whole chunks of `old` that lie before `size`; returns how many bytes that is."""
        self.driver.run(
            'INSERT INTO "chunk" ("version","start","size","digest") SELECT CAST(? AS BIGINT),"start","size","digest"'
            ' FROM "chunk" WHERE "version"=? AND "start"+"size"<=?',
            (new, old, size),
        )
        last = self._last_chunk(new)
        return last.start + last.size if last else 0

    def read_raw(self, version: int, start: int, size: int) -> bytes:
        """Bytes of a version; fewer where it ends before. Only the chunks that cover them are unpacked."""
        with self.driver.reading():
            return self._read(version, start, size)

    def _read(self, version: int, start: int, size: int) -> bytes:
        first = self.driver.one(
            'SELECT "start" FROM "chunk" WHERE "version"=? AND "start"<=? ORDER BY "start" DESC LIMIT 1',
            (version, start),
        )
        if first is None or size <= 0:
            return b""
        rows = self.driver.all(
            'SELECT "start","digest" FROM "chunk" WHERE "version"=? AND "start">=? AND "start"<? ORDER BY "start"',
            (version, first[0], start + size),
        )
        pieces = [self._read_recent_chunk(digest)[max(start - at, 0) : start + size - at] for at, digest in rows]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def chunks(self, version: int) -> list[Chunk]:
        """Where the bytes of a version are, in order."""
        return CHUNKS.read(self.driver.all(f'{CHUNKS.select} WHERE "version"=? ORDER BY "start"', (version,)))

    def read_chunk(self, digest: bytes) -> bytes:
        """The bytes behind a digest. Raises NotAnArchive when they are missing or do not match it."""
        row = self.driver.one('SELECT "data" FROM "blob" WHERE "digest"=?', (digest,))
        if row is None:
            raise NotAnArchive(self.driver.url, f"chunk {digest.hex()[:16]} is missing")
        try:
            data = self.packer.unpack(row[0])
        except ValueError as failure:
            raise NotAnArchive(self.driver.url, f"chunk {digest.hex()[:16]} is damaged") from failure
        if sha256(data).digest() != digest:
            raise NotAnArchive(self.driver.url, f"chunk {digest.hex()[:16]} does not match its checksum")
        return data

    def put_chunks(self, version: int, chunks: Iterable[tuple[int, bytes]]) -> None:
        """Replace the bytes at given chunk starts by others of the same length."""
        for start, data in chunks:
            row = self.driver.one(f'{CHUNKS.select} WHERE "version"=? AND "start"=?', (version, start))
            if row is None or row[2] != len(data):
                raise Conflict(f"the chunk at {start} of source version {version}")
            self._replace(Chunk(*row), data)

    def delete_chunks(self, version: int) -> None:
        """Remove the chunks of a version, and bytes nobody else names."""
        digests = self.driver.all('SELECT DISTINCT "digest" FROM "chunk" WHERE "version"=?', (version,))
        self.driver.run('DELETE FROM "chunk" WHERE "version"=?', (version,))
        self._release(row[0] for row in digests)

    # helpers ------------------------------------------------------------------------------------------------------
    def _last_chunk(self, version: int) -> Chunk | None:
        row = self.driver.one(f'{CHUNKS.select} WHERE "version"=? ORDER BY "start" DESC LIMIT 1', (version,))
        return None if row is None else Chunk(*row)

    def _put(self, data: Bytes) -> bytes:
        digest = sha256(data).digest()
        if self.driver.one('SELECT 1 FROM "blob" WHERE "digest"=?', (digest,)) is None:
            sql = 'INSERT INTO "blob" ("digest","data") VALUES (?,?) ON CONFLICT ("digest") DO NOTHING'
            self.driver.run(sql, (digest, self.packer.pack(data)))
        return digest

    def _replace(self, old: Chunk, data: Bytes) -> None:
        digest = self._put(data)
        sql = 'UPDATE "chunk" SET "size"=?,"digest"=? WHERE "version"=? AND "start"=?'
        self.driver.run(sql, (len(data), digest, old.version, old.start))
        if digest != old.digest:
            self._release([old.digest])
        self._remember_chunk(digest, bytes(data))  # what grows is likely to grow again

    def _release(self, digests: Iterable[bytes]) -> None:
        for digest in digests:
            self._recent.pop(digest, None)
            self.driver.run(_RELEASE, (digest, digest))

    def _read_recent_chunk(self, digest: bytes) -> bytes:
        """As `read_chunk`, from memory when it was read a moment ago: messages are read one after another."""
        data = self._recent.get(digest)
        if data is None:
            data = self._remember_chunk(digest, self.read_chunk(digest))
        else:
            self._recent.move_to_end(digest)
        return data

    def _remember_chunk(self, digest: bytes, data: bytes) -> bytes:
        self._recent[digest] = data
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return data


def _file_and_version(row: Row) -> tuple[SourceFile, Version]:
    width = len(FILES.columns)
    file = SourceFile(*row[:width])
    file.path = _STAND_IN.sub(lambda found: chr(ord(found[0]) - _SHIFT), file.path)
    return file, Version(source=file.id) if row[width] is None else Version(*row[width:])


def _storable_path(path: str) -> str:
    """Names of files that are not UTF-8 have lone surrogates, which no database takes: private characters stand in."""
    return _LONE.sub(lambda found: chr(ord(found[0]) + _SHIFT), path)
