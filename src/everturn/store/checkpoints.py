"""Checkpoints of graphs, in the kept layer: a thread's state after each step, and what its tasks have written since.

A value is stored once per thread, by the digest of its bytes; a checkpoint refers to the value of each channel, so an
unchanged channel costs one small row. Bytes are opaque, and no input becomes part of a statement.

The writes of a task are stored by (task, idx); a negative idx is a slot that keeps its newest content. Repeating the same
writes changes nothing. Different writes at the same idx replace the task's earlier ones (it ran again) until another
checkpoint builds on this one; then they are refused, because what followed depends on the earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any

from msgspec import Struct
from msgspec.structs import astuple

from everturn.errors import Conflict, NotAnArchive
from everturn.store.sql import Conditions, Driver, Table, query_in_lists

#: A value as a serialiser gives it: the name of its encoding, and its bytes.
Typed = tuple[str, bytes]


class GraphCheckpoint(Struct, frozen=True):
    """A checkpoint without its values. `parent` and `run` may be empty."""

    thread: str
    space: str
    id: str
    parent: str
    run: str
    kind: str
    body: bytes
    meta_kind: str
    meta: bytes
    at: int


class PendingWrite(Struct, frozen=True):
    """A write of a task since a checkpoint."""

    thread: str
    space: str
    checkpoint: str
    task: str
    idx: int
    path: str
    channel: str
    kind: str
    data: bytes


class Channel(Struct, frozen=True):
    """The value of a channel at a checkpoint: new, or an existing one by its digest."""

    name: str
    version: str
    value: Typed | None = None
    digest: bytes = b""


_CHECKPOINTS = Table("checkpoint", GraphCheckpoint, ("thread", "space", "id"))
_WRITES = Table("checkpoint_write", PendingWrite, ("thread", "space", "checkpoint", "task", "idx"))
_THREAD_TABLES = ("checkpoint", "checkpoint_channel", "checkpoint_value", "checkpoint_write")
_WHERE_CHECKPOINT = 'WHERE "thread"=? AND "space"=? AND "checkpoint"=?'


class CheckpointStore:
    """The part of a store that holds checkpoints. Write inside `write()`."""

    driver: Driver

    # --- write ---
    def put_checkpoint(self, row: GraphCheckpoint, channels: Iterable[Channel]) -> None:
        """Insert or replace a checkpoint with the values of its channels."""
        key = (row.thread, row.space, row.id)
        self.driver.run(_CHECKPOINTS.upsert, astuple(row))
        self.driver.run(f'DELETE FROM "checkpoint_channel" {_WHERE_CHECKPOINT}', key)
        rows = [(*key, one.name, one.version, self._put_value(row.thread, one)) for one in channels]
        self.driver.many('INSERT INTO "checkpoint_channel" VALUES (?,?,?,?,?,?)', rows)

    def put_checkpoint_writes(self, rows: Sequence[PendingWrite]) -> None:
        """Store the writes of one task. Raises Conflict if a later checkpoint builds on different ones."""
        self.driver.many(_WRITES.upsert, [astuple(row) for row in rows if row.idx < 0])
        plain = [row for row in rows if row.idx >= 0]
        if not plain:
            return
        first = plain[0]
        before = {
            row.idx: row for row in self.checkpoint_writes(first.thread, first.space, first.checkpoint, first.task)
        }
        changed = [row for row in plain if row.idx in before and _write_content(before[row.idx]) != _write_content(row)]
        if changed:
            self._clear_task_writes(first)
        self.driver.many(_WRITES.upsert, [astuple(row) for row in plain if changed or row.idx not in before])

    def delete_thread(self, thread: str) -> None:
        for table in _THREAD_TABLES:
            self.driver.run(f'DELETE FROM "{table}" WHERE "thread"=?', (thread,))

    def drop_threads(self, matches: Callable[[bytes], bool]) -> int:
        """Delete the threads with matching content; return how many."""
        contents = (
            'SELECT "thread","body","meta" FROM "checkpoint"',
            'SELECT "thread","data",NULL FROM "checkpoint_value"',
            'SELECT "thread","data",NULL FROM "checkpoint_write"',
        )
        found = {
            str(row[0])
            for sql in contents
            for row in self.driver.each(sql)
            if any(value is not None and matches(bytes(value)) for value in row[1:])
        }
        for thread in sorted(found):
            self.delete_thread(thread)
        return len(found)

    def delete_checkpoints(self, thread: str, places: Iterable[tuple[str, str]]) -> None:
        """Delete checkpoints of a thread, each (space, id), with their writes and unshared values."""
        keys = [(thread, space, name) for space, name in places]
        self.driver.many('DELETE FROM "checkpoint" WHERE "thread"=? AND "space"=? AND "id"=?', keys)
        for table in ("checkpoint_channel", "checkpoint_write"):
            self.driver.many(f'DELETE FROM "{table}" {_WHERE_CHECKPOINT}', keys)
        used = 'SELECT c."digest" FROM "checkpoint_channel" c WHERE c."thread"=?'
        unused = f'DELETE FROM "checkpoint_value" WHERE "thread"=? AND "digest" NOT IN ({used})'
        self.driver.run(unused, (thread, thread))

    def copy_thread(self, source: str, target: str) -> None:
        """Copy a thread under another name; existing rows of the target stay."""
        columns = {
            "checkpoint": _CHECKPOINTS.columns[1:],
            "checkpoint_channel": ("space", "checkpoint", "channel", "version", "digest"),
            "checkpoint_value": ("digest", "kind", "data"),
            "checkpoint_write": _WRITES.columns[1:],
        }
        for table, names in columns.items():
            listed = ",".join(f'"{name}"' for name in names)
            self.driver.run(
                f'INSERT INTO "{table}" ("thread",{listed}) SELECT ?,{listed} FROM "{table}" WHERE "thread"=? '
                f"ON CONFLICT DO NOTHING",
                (target, source),
            )

    # --- read ---
    def checkpoint(self, thread: str, space: str, name: str = "") -> GraphCheckpoint | None:
        """Return a checkpoint, by default the newest of its space."""
        for row in self.checkpoints(thread, space, name, limit=1):
            return row
        return None

    def checkpoints(
        self, thread: str | None, space: str | None = None, name: str = "", before: str = "", limit: int | None = None
    ) -> Iterator[GraphCheckpoint]:
        """Yield checkpoints by thread and space, newest first. None and "" do not limit."""
        conditions = Conditions()
        for column, value in (("thread", thread), ("space", space), ("id", name or None)):
            if value is not None:
                conditions.add(f'"{column}"=?', value)
        if before:
            conditions.add('"id"<?', before)
        most = "" if limit is None else f" LIMIT {max(limit, 0)}"
        sql = f'{_CHECKPOINTS.select}{conditions.where()} ORDER BY "thread","space","id" DESC{most}'
        return (GraphCheckpoint(*row) for row in self.driver.each(sql, conditions.params))

    def checkpoint_channels(self, thread: str, space: str, name: str) -> dict[str, tuple[str, bytes]]:
        """Return channel → (version, digest of the value)."""
        sql = f'SELECT "channel","version","digest" FROM "checkpoint_channel" {_WHERE_CHECKPOINT}'
        return {channel: (version, digest) for channel, version, digest in self.driver.all(sql, (thread, space, name))}

    def checkpoint_values(self, thread: str, space: str, name: str, only: Sequence[str] = ()) -> dict[str, Typed]:
        """Return the values of all or some channels. Raises NotAnArchive if one is missing or damaged."""
        channels = self.checkpoint_channels(thread, space, name)
        digests = {channel: digest for channel, (_, digest) in channels.items() if not only or channel in only}
        sql = 'SELECT "digest","kind","data" FROM "checkpoint_value" WHERE "thread"=? AND "digest" IN ({})'
        found = {
            digest: (kind, data)
            for digest, kind, data in query_in_lists(self.driver.all, sql, [*digests.values()], [thread])
        }
        for channel, digest in digests.items():
            if digest not in found or _digest(found[digest]) != digest:
                raise NotAnArchive(self.driver.url, f"the value of {channel!r} at checkpoint {name} is damaged")
        return {channel: found[digest] for channel, digest in digests.items()}

    def checkpoint_writes(self, thread: str, space: str, name: str, task: str | None = None) -> list[PendingWrite]:
        """Return writes in the order of application: by path, task and idx."""
        sql, given = f"{_WRITES.select} {_WHERE_CHECKPOINT}", [thread, space, name]
        if task is not None:
            sql, given = f'{sql} AND "task"=?', [*given, task]
        return _WRITES.read(self.driver.all(f'{sql} ORDER BY "path","task","idx"', given))

    def checkpoints_of_runs(self, runs: Sequence[str]) -> list[tuple[str, str, str]]:
        """Return (thread, space, id) of the checkpoints of these runs."""
        sql = 'SELECT "thread","space","id" FROM "checkpoint" WHERE "run" IN ({})'
        named = [run for run in runs if run]
        return [(thread, space, name) for thread, space, name in query_in_lists(self.driver.all, sql, named)]

    # --- helpers ---
    def _put_value(self, thread: str, channel: Channel) -> bytes:
        if channel.value is None:
            return channel.digest
        digest = _digest(channel.value)
        sql = 'INSERT INTO "checkpoint_value" VALUES (?,?,?,?) ON CONFLICT DO NOTHING'
        self.driver.run(sql, (thread, digest, *channel.value))
        return digest

    def _clear_task_writes(self, first: PendingWrite) -> None:
        key = (first.thread, first.space, first.checkpoint)
        child = 'SELECT 1 FROM "checkpoint" WHERE "thread"=? AND "space"=? AND "parent"=? LIMIT 1'
        if self.driver.one(child, key) is not None:
            raise Conflict(f"task {first.task} of checkpoint {first.checkpoint} in thread {first.thread}")
        self.driver.run(
            f'DELETE FROM "checkpoint_write" {_WHERE_CHECKPOINT} AND "task"=? AND "idx">=0', (*key, first.task)
        )


def _write_content(row: PendingWrite) -> tuple[Any, ...]:
    return (row.channel, row.kind, row.data)


def _digest(value: Typed) -> bytes:
    kind, data = value
    return sha256(kind.encode() + b"\n" + data).digest()
