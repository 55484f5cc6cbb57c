"""The raw layer: source files, their versions, and all bytes of each version in chunks addressed by SHA-256.

A chunk has at most 256 kB. The last one is replaced by a longer one while it is small; the others never change. Bytes
that several chunks share (versions or copies of a file) are stored once, and deleted with the last chunk that refers to
them. Chunks are compressed with zstd where that is smaller; the first byte says which.
"""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from msgspec.structs import replace

from everturn.errors import Conflict, NotAnArchive, NothingFound
from everturn.model.archive import Chunk, PackedChunk, SourceFile, Version
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
    """Packs chunks. One per store: its compressor is reused and must not be shared between threads."""

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(level=_LEVEL)

    def pack(self, data: Bytes) -> bytes:
        """Return the stored form of bytes."""
        packed: bytes = self._compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)
        return _ZSTD + packed if len(packed) < len(data) else _PLAIN + bytes(data)

    def unpack(self, stored: bytes) -> bytes:
        """Return the original bytes. Raises ValueError if they are damaged."""
        kind, rest = stored[:1], memoryview(stored)[1:]
        if kind == _PLAIN:
            return bytes(rest)
        if kind != _ZSTD:
            raise ValueError("unknown packing")
        try:
            data: bytes = zstd.decompress(rest)
        except zstd.ZstdError as failure:
            raise ValueError(str(failure)) from failure
        return data


CHUNK = 256 * 1024  # longest chunk
SEALED = 64 * 1024  # a shorter last chunk is replaced when more bytes arrive


class ChunkPacker:
    """Cuts and packs the bytes of a new version as `append_raw` does, in a process without the archive."""

    def __init__(self) -> None:
        self._packer = Packer()
        self._end = 0
        self._short = b""  # the last chunk, if it is to be replaced by a longer one

    def pack(self, data: bytes) -> list[PackedChunk]:
        """Return the chunks of the next bytes. The first one may replace the last one of the bytes before."""
        start = self._end - len(self._short)
        self._end += len(data)
        parts = _cut_chunks(memoryview(self._short + data if self._short else data))
        self._short = bytes(parts[-1]) if parts and len(parts[-1]) < SEALED else b""
        chunks = []
        for part in parts if data else ():
            chunks.append(PackedChunk(start, len(part), sha256(part).digest(), self._packer.pack(part)))
            start += len(part)
        return chunks


def _cut_chunks(data: memoryview) -> list[memoryview]:
    return [data[first : first + CHUNK] for first in range(0, len(data), CHUNK)]


_RECENT = 16  # unpacked chunks in memory

_FILES_AND_VERSIONS = f'SELECT {FILES.fields("f")},{VERSIONS.fields("v")} FROM "source_file" f LEFT JOIN "version" v ON v."id"=f."version"'
_LONE = re.compile("[\ud800-\udfff]")
_STAND_IN = re.compile("[\U0010f000-\U0010f7ff]")
_SHIFT = 0x10F000 - 0xD800

_RANGES = 100  # in one statement
#: The chunks of several ranges. Chunks have at most CHUNK bytes, so none that starts earlier reaches into a range.
_COVERING = f"""
    SELECT r.column1, c."start", c."digest", b."data" FROM (VALUES {{}}) AS r
    CROSS JOIN "chunk" c CROSS JOIN "blob" b WHERE c."version"=r.column2 AND c."start"<r.column4
    AND c."start">r.column3-{CHUNK} AND c."start"+c."size">r.column3 AND b."digest"=c."digest"
"""
_RELEASE = 'DELETE FROM "blob" WHERE "digest"=? AND NOT EXISTS (SELECT 1 FROM "chunk" WHERE "digest"=?)'


class RawStore:
    """The part of a store that holds raw bytes."""

    driver: Driver
    packer: Packer
    _recent: OrderedDict[bytes, bytes]

    # --- files and versions ---
    def files(self, machine: str = "") -> list[tuple[SourceFile, Version]]:
        where, params = (' WHERE f."machine"=?', (machine,)) if machine else ("", ())
        return [
            _file_and_version(row) for row in self.driver.all(f'{_FILES_AND_VERSIONS}{where} ORDER BY f."id"', params)
        ]

    def file(self, machine: str, path: str) -> tuple[SourceFile, Version] | None:
        row = self.driver.one(
            f'{_FILES_AND_VERSIONS} WHERE f."machine"=? AND f."path"=?', (machine, _storable_path(path))
        )
        return None if row is None else _file_and_version(row)

    def file_by_id(self, source: int) -> tuple[SourceFile, Version]:
        if (row := self.driver.one(f'{_FILES_AND_VERSIONS} WHERE f."id"=?', (source,))) is None:
            raise NothingFound(f"no source file {source} in the archive; `everturn sources` lists them")
        return _file_and_version(row)

    def files_of(self, agent: str, parent: str, kind: str) -> list[tuple[SourceFile, Version]]:
        sql = f'{_FILES_AND_VERSIONS} WHERE f."format"=? AND f."parent"=? AND f."kind"=? ORDER BY f."path"'
        return [_file_and_version(row) for row in self.driver.all(sql, (agent, parent, kind))]

    def add_file(self, row: SourceFile) -> int:
        """Insert a source file. Raises Conflict if another process has inserted it."""
        sql = f'{FILES.insert} ON CONFLICT ("machine","path") DO NOTHING RETURNING "id"'
        inserted = self.driver.one(sql, FILES.values(replace(row, path=_storable_path(row.path))))
        if inserted is None:
            raise Conflict(row.path)
        return int(inserted[0])

    def set_file(self, source: int, **changes: Any) -> None:
        if "path" in changes:
            changes["path"] = _storable_path(changes["path"])
        self.driver.run(f'{FILES.update(changes)} WHERE "id"=?', (*changes.values(), source))

    def versions(self, source: int) -> list[Version]:
        """Return every version of a source, oldest first."""
        return VERSIONS.read(self.driver.all(f'{VERSIONS.select} WHERE "source"=? ORDER BY "number"', (source,)))

    def version(self, version: int) -> Version:
        if (row := self.driver.one(f'{VERSIONS.select} WHERE "id"=?', (version,))) is None:
            raise NothingFound(f"no version {version} in the archive; `everturn sources` lists what is there")
        return Version(*row)

    def add_version(self, row: Version) -> int:
        new = self.driver.insert(VERSIONS.insert, VERSIONS.values(row))
        self.driver.run('UPDATE "source_file" SET "version"=? WHERE "id"=?', (new, row.source))
        self.driver.run(
            'UPDATE "session" SET "state"=? WHERE "version" IN (SELECT "id" FROM "version" WHERE "source"=? AND "id"<>?)',
            ("superseded", row.source, new),
        )
        return new

    def set_version(self, version: int, **changes: Any) -> None:
        self.driver.run(f'{VERSIONS.update(changes)} WHERE "id"=?', (*changes.values(), version))

    def move_cursor(self, version: int, offset: int, /, **changes: Any) -> None:
        sql = f'{VERSIONS.update(changes)} WHERE "id"=? AND "offset"=?'
        if self.driver.run(sql, (*changes.values(), version, offset)) != 1:
            raise Conflict(f"the place reached in source version {version}")

    # --- bytes ---
    def append_raw(self, version: int, at: int, data: Bytes) -> None:
        last = self._last_chunk(version)
        if at != (last.start + last.size if last else 0):
            raise Conflict(f"the end of source version {version}")
        rest = memoryview(data)
        if last is not None and last.size < SEALED and rest:
            added = rest[: CHUNK - last.size]
            self._replace_chunk(last, self._read_recent_chunk(last.digest) + added)
            at, rest = at + len(added), rest[len(added) :]
        for part in _cut_chunks(rest):
            self.driver.run(CHUNKS.insert, (version, at, len(part), self._put_bytes(part)))
            at += len(part)

    def append_packed(self, version: int, at: int, chunks: Sequence[PackedChunk]) -> None:
        last = self._last_chunk(version)
        if at != (last.start + last.size if last else 0):
            raise Conflict(f"the end of source version {version}")
        for chunk in chunks:
            self._put_packed(chunk.digest, partial(getattr, chunk, "data"))
            if last is None or chunk.start > last.start:
                self.driver.run(CHUNKS.insert, (version, chunk.start, chunk.size, chunk.digest))
            else:
                self._point_to(last, chunk.size, chunk.digest)

    def share_raw(self, old: int, new: int, size: int) -> int:
        self.driver.run(
            'INSERT INTO "chunk" ("version","start","size","digest") SELECT CAST(? AS BIGINT),"start","size","digest"'
            ' FROM "chunk" WHERE "version"=? AND "start"+"size"<=?',
            (new, old, size),
        )
        return last.start + last.size if (last := self._last_chunk(new)) else 0

    def read_raw(self, version: int, start: int, size: int) -> bytes:
        """Return bytes of a version, fewer at its end. Only the chunks that cover them are unpacked."""
        with self.driver.reading():
            return self._join_chunks(version, start, size)

    def _join_chunks(self, version: int, start: int, size: int) -> bytes:
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
        parts = [self._read_recent_chunk(digest)[max(start - at, 0) : start + size - at] for at, digest in rows]
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def read_ranges(self, ranges: Sequence[tuple[int, int, int]]) -> list[bytes]:
        parts: list[list[tuple[int, bytes]]] = [[] for _ in ranges]
        for first in range(0, len(ranges), _RANGES):
            some = ranges[first : first + _RANGES]
            marks = ",".join(["(CAST(? AS BIGINT),CAST(? AS BIGINT),CAST(? AS BIGINT),CAST(? AS BIGINT))"] * len(some))
            given = [
                value for n, (version, at, size) in enumerate(some, first) for value in (n, version, at, at + size)
            ]
            for number, start, digest, data in self.driver.all(_COVERING.format(marks), given):
                if (chunk := self._recent.get(digest)) is None:
                    chunk = self._remember_chunk(digest, self._unpack_chunk(digest, data))
                parts[number].append((start, chunk))
        return [_cut_range(found, start, start + size) for found, (_, start, size) in zip(parts, ranges, strict=True)]

    def chunks(self, version: int) -> list[Chunk]:
        return CHUNKS.read(self.driver.all(f'{CHUNKS.select} WHERE "version"=? ORDER BY "start"', (version,)))

    def read_chunk(self, digest: bytes) -> bytes:
        if (row := self.driver.one('SELECT "data" FROM "blob" WHERE "digest"=?', (digest,))) is None:
            raise NotAnArchive(self.driver.url, f"chunk {digest.hex()[:16]} is missing")
        return self._unpack_chunk(digest, row[0])

    def _unpack_chunk(self, digest: bytes, stored: bytes) -> bytes:
        try:
            data = self.packer.unpack(stored)
        except ValueError as failure:
            raise NotAnArchive(self.driver.url, f"chunk {digest.hex()[:16]} is damaged") from failure
        if sha256(data).digest() != digest:
            raise NotAnArchive(self.driver.url, f"chunk {digest.hex()[:16]} does not match its checksum")
        return data

    def put_chunks(self, version: int, chunks: Iterable[tuple[int, bytes]]) -> None:
        for start, data in chunks:
            row = self.driver.one(f'{CHUNKS.select} WHERE "version"=? AND "start"=?', (version, start))
            if row is None or row[2] != len(data):
                raise Conflict(f"the chunk at {start} of source version {version}")
            self._replace_chunk(Chunk(*row), data)

    def delete_chunks(self, version: int) -> None:
        """Delete the chunks of a version, and bytes that no other chunk refers to."""
        digests = self.driver.all('SELECT DISTINCT "digest" FROM "chunk" WHERE "version"=?', (version,))
        self.driver.run('DELETE FROM "chunk" WHERE "version"=?', (version,))
        self._release_bytes(row[0] for row in digests)

    # --- helpers ---
    def _last_chunk(self, version: int) -> Chunk | None:
        row = self.driver.one(f'{CHUNKS.select} WHERE "version"=? ORDER BY "start" DESC LIMIT 1', (version,))
        return None if row is None else Chunk(*row)

    def _put_bytes(self, data: Bytes) -> bytes:
        digest = sha256(data).digest()
        self._put_packed(digest, lambda: self.packer.pack(data))
        return digest

    def _put_packed(self, digest: bytes, pack: Callable[[], bytes]) -> None:
        if self.driver.one('SELECT 1 FROM "blob" WHERE "digest"=?', (digest,)) is None:
            sql = 'INSERT INTO "blob" ("digest","data") VALUES (?,?) ON CONFLICT ("digest") DO NOTHING'
            self.driver.run(sql, (digest, pack()))

    def _replace_chunk(self, old: Chunk, data: Bytes) -> None:
        digest = self._put_bytes(data)
        self._point_to(old, len(data), digest)
        self._remember_chunk(digest, bytes(data))  # a growing file is likely to grow again

    def _point_to(self, old: Chunk, size: int, digest: bytes) -> None:
        sql = 'UPDATE "chunk" SET "size"=?,"digest"=? WHERE "version"=? AND "start"=?'
        self.driver.run(sql, (size, digest, old.version, old.start))
        if digest != old.digest:
            self._release_bytes([old.digest])

    def _release_bytes(self, digests: Iterable[bytes]) -> None:
        for digest in digests:
            self._recent.pop(digest, None)
            self.driver.run(_RELEASE, (digest, digest))

    def _read_recent_chunk(self, digest: bytes) -> bytes:
        """Return a chunk, from memory if it was read recently: messages are read one after another."""
        if (data := self._recent.get(digest)) is None:
            data = self._remember_chunk(digest, self.read_chunk(digest))
        else:
            self._recent.move_to_end(digest)
        return data

    def _remember_chunk(self, digest: bytes, data: bytes) -> bytes:
        self._recent[digest] = data
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return data


def _cut_range(found: list[tuple[int, bytes]], start: int, end: int) -> bytes:
    return b"".join(chunk[max(start - at, 0) : end - at] for at, chunk in sorted(found))


def _file_and_version(row: Row) -> tuple[SourceFile, Version]:
    width = len(FILES.columns)
    file = SourceFile(*row[:width])
    file.path = _STAND_IN.sub(lambda found: chr(ord(found[0]) - _SHIFT), file.path)
    return file, Version(source=file.id) if row[width] is None else Version(*row[width:])


def _storable_path(path: str) -> str:
    """Replace lone surrogates, of file names that are not UTF-8, by private characters: no database accepts them."""
    return _LONE.sub(lambda found: chr(ord(found[0]) + _SHIFT), path)
