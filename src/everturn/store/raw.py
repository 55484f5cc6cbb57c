"""The raw layer: source files, their versions, and all bytes of each version in chunks addressed by SHA-256.

A chunk has at most 256 kB. The last one is replaced by a longer one while it is small; the others never change. Bytes
that several chunks share (versions or copies of a file) are stored once, and deleted with the last chunk that refers to
them. Chunks are compressed with zstd where that is smaller; the first byte says which.

An archive may keep the packed chunks in a place outside of its database (`RawPlace`): a folder, or an object store that speaks S3. The
row of such a chunk stays, with a mark instead of the bytes, so that everything above is the same. Bytes are put there before the
transaction that needs them ends, and deleted under the writers' lock after the one that released them (`sweep_place`).
"""

from __future__ import annotations

import os
import re
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import parse_qs, urlsplit

from msgspec.structs import replace

from everturn.errors import Conflict, EverturnError, NotAnArchive, NothingFound, UsageError
from everturn.model.archive import Chunk, PackedChunk, SourceFile, Version
from everturn.store.contract import Store
from everturn.store.sql import CHUNKS, FILES, VERSIONS, Driver, Row

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Bytes = bytes | bytearray | memoryview

_PLAIN = b"\x00"
_ZSTD = b"\x01"
_LEVEL = 1  # measured: a sixth faster than 2, and three per cent larger


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


# --- a place outside of the database ---
PLACE = "raw place"  # the setting with its address
_ELSEWHERE = b"\x02"  # instead of the bytes


class RawPlace(Protocol):
    """Packed chunks by their digest."""

    def put(self, digest: bytes, data: bytes) -> None:
        """Store a chunk; it is durable when this returns. Storing it again changes nothing."""

    def get(self, digest: bytes) -> bytes | None:
        """Return a chunk, or None."""

    def delete(self, digest: bytes) -> None:
        """Delete a chunk, if it is there."""


class FolderPlace:
    """A folder, of this machine or shared by all that open the archive."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, digest: bytes, data: bytes) -> None:
        path = self._folder / _object_name(digest)
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}.new")
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        if os.name != "nt":  # its name is durable too
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)

    def get(self, digest: bytes) -> bytes | None:
        try:
            return (self._folder / _object_name(digest)).read_bytes()
        except FileNotFoundError:
            return None

    def delete(self, digest: bytes) -> None:
        (self._folder / _object_name(digest)).unlink(missing_ok=True)


class ObjectPlace:
    """A bucket that speaks S3. Credentials are those of the environment, as for every program of that kind (AWS_ACCESS_KEY_ID …)."""

    def __init__(self, address: str) -> None:
        try:
            from obstore.store import S3Store
        except ImportError as error:
            raise EverturnError(
                "chunks of this archive are in an object store; run: pip install 'everturn[objects]'"
            ) from error
        parts = urlsplit(address)
        given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        endpoint, region = given.pop("endpoint", None), given.pop("region", "us-east-1")
        if not parts.netloc or given:
            raise UsageError(f"{address!r} is not s3://BUCKET/PREFIX?endpoint=URL&region=NAME")
        is_local = urlsplit(endpoint or "").hostname in ("127.0.0.1", "localhost", "::1")
        self._bucket = S3Store(
            parts.netloc, prefix=parts.path.strip("/") or None, endpoint=endpoint, region=region,
            client_options={"allow_http": is_local, "timeout": "60s"},
        )  # fmt: skip

    def put(self, digest: bytes, data: bytes) -> None:
        self._bucket.put(_object_name(digest), data)

    def get(self, digest: bytes) -> bytes | None:
        try:
            return bytes(self._bucket.get(_object_name(digest)).bytes())
        except FileNotFoundError:
            return None

    def delete(self, digest: bytes) -> None:
        self._bucket.delete(_object_name(digest))


def open_place(address: str) -> RawPlace:
    """Return the place of an address: a folder, or s3://BUCKET/PREFIX. Raises UsageError."""
    if address.startswith("s3://"):
        return ObjectPlace(address)
    if not os.path.isabs(address):
        raise UsageError(f"{address!r} is neither the whole path of a folder nor s3://BUCKET/PREFIX")
    return FolderPlace(Path(address))


def set_place(store: Store, address: str) -> None:
    """Set the place of new chunks, once. Raises UsageError for an address that is none, and EverturnError for one that cannot be used."""
    if store.setting(PLACE) not in ("", address):
        raise UsageError("the bytes of this archive have a place already, and stay there")
    place, probe = open_place(address), sha256(b"everturn").digest()
    try:
        place.put(probe, _PLAIN + b"everturn")
        if place.get(probe) != _PLAIN + b"everturn":
            raise OSError("what was written is not there")
        place.delete(probe)
    except Exception as error:  # of the file system, or of the library
        raise EverturnError(f"{address} cannot be written and read: {type(error).__name__}; check it") from error
    store.set_setting(PLACE, address)
    cast("RawStore", store)._is_place_known = False


def _object_name(digest: bytes) -> str:
    name = digest.hex()
    return f"{name[:2]}/{name[2:4]}/{name}"


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
    _place: tuple[str, RawPlace | None] = ("", None)
    _is_place_known = False
    _has_released = False  # chunks in the place, in this transaction

    # --- a place outside of the database ---
    def raw_place(self) -> RawPlace | None:
        """Return where new chunks go, if not into the database. Asked once in a transaction; a place does not change."""
        if self._is_place_known:
            return self._place[1]
        row = self.driver.one('SELECT "value" FROM "setting" WHERE "key"=?', (PLACE,))
        address = str(row[0]) if row else ""
        if address != self._place[0]:
            self._place = address, open_place(address) if address else None
        self._is_place_known = bool(address) or self.driver.is_writing
        return self._place[1]

    def sweep_place(self) -> None:
        """Delete chunks from the place that an earlier transaction has released, as the only writer."""
        if (place := self.raw_place()) is None:
            return
        for (digest,) in self.driver.all('SELECT "digest" FROM "blob_gone"'):
            if self.driver.one('SELECT 1 FROM "blob" WHERE "digest"=?', (digest,)) is None:
                place.delete(bytes(digest))
            self.driver.run('DELETE FROM "blob_gone" WHERE "digest"=?', (digest,))

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
        if row.number > 1:
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
        if stored == _ELSEWHERE:
            place = self.raw_place()
            stored = (place.get(digest) if place is not None else None) or b""
            if not stored:
                raise NotAnArchive(self.driver.url, f"chunk {digest.hex()[:16]} is missing in its place outside")
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
            data = pack()
            if (place := self.raw_place()) is not None:
                place.put(digest, data)
                data = _ELSEWHERE
            sql = 'INSERT INTO "blob" ("digest","data") VALUES (?,?) ON CONFLICT ("digest") DO NOTHING'
            self.driver.run(sql, (digest, data))

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
            if self.driver.run(_RELEASE, (digest, digest)) and self.raw_place() is not None:
                self.driver.run('INSERT INTO "blob_gone" ("digest") VALUES (?) ON CONFLICT DO NOTHING', (digest,))
                self._has_released = True

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
