"""Checkpoints of LangGraph in the archive: `builder.compile(checkpointer=ArchiveSaver("archive.db"))`.

    values     each is stored once in its thread; an unchanged channel is not serialised again
    writes     stored per task as soon as it ends; none is dropped silently (see `store.checkpoints`)
    filters    compared here, not in the database: no key or value of a filter reaches a statement
    deltas     `prune` and `delete_for_runs` keep the ancestors that a delta channel is rebuilt from

Values are serialised by LangGraph's own JSON and msgpack, never by pickle: a value they cannot express is refused when it is
saved, and a serialiser with a fallback to pickle is refused when the saver is made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from os import PathLike
from random import random
from typing import Any

from langchain_core.runnables import RunnableConfig  # type: ignore[import-not-found, unused-ignore]
from langgraph.checkpoint.base import (  # type: ignore[import-not-found, unused-ignore]
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from everturn.errors import UsageError
from everturn.integrations.archive import Archive, as_archive
from everturn.integrations.mirror import Mirror, graph_turn
from everturn.model.archive import FrameworkData
from everturn.store.checkpoints import Channel, GraphCheckpoint, PendingWrite
from everturn.store.sql_store import SqlStore

STRATEGIES = ("keep_latest", "delete")
MIRRORED = "mirrored messages"  # the ids of messages that are in the session of a thread

_COUNTERS = "counters_since_delta_snapshot"  # in the metadata of threads that have delta channels, by channel


class ArchiveSaver(BaseCheckpointSaver[str]):  # type: ignore[misc, unused-ignore]
    """A checkpointer with the methods of `BaseCheckpointSaver`, for threads and event loops."""

    def __init__(self, archive: Archive | str | PathLike[str], *, serde: Any = None) -> None:
        super().__init__(serde=serde)
        if getattr(getattr(self.serde, "serde", self.serde), "pickle_fallback", False):
            raise UsageError("a serialiser with pickle_fallback runs code when it is read; give one without")
        self.archive = as_archive(archive)

    # --- one thread's state ---
    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint with its values and pending writes: the named one, or the newest."""
        return self.archive.do(self._get, config)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await self.archive.ado(self._get, config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints whose metadata match the filter, newest first."""
        for place in self.archive.do(self._list, config, filter or {}, before, limit):
            if (found := self.archive.do(self._get, place)) is not None:
                yield found

    async def alist(
        self, config: RunnableConfig | None, *, filter: Any = None, before: Any = None, limit: int | None = None
    ) -> AsyncIterator[CheckpointTuple]:
        for place in await self.archive.ado(self._list, config, filter or {}, before, limit):
            if (found := await self.archive.ado(self._get, place)) is not None:
                yield found

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; durable when it returns."""
        return self.archive.do(self._put, config, checkpoint, metadata, new_versions)

    async def aput(
        self, config: RunnableConfig, checkpoint: Checkpoint, metadata: Any, new_versions: ChannelVersions
    ) -> RunnableConfig:
        return await self.archive.ado(self._put, config, checkpoint, metadata, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store the writes of a task since the checkpoint; durable when it returns."""
        self.archive.do(self._put_writes, config, writes, task_id, task_path)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await self.archive.ado(self._put_writes, config, writes, task_id, task_path)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return for each channel its nearest stored value among the ancestors, and the writes since, oldest first."""
        return self.archive.do(self._history, config, channels)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        return await self.archive.ado(self._history, config, channels)

    # --- whole threads ---
    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        self.archive.do(self._delete_thread, thread_id)

    async def adelete_thread(self, thread_id: str) -> None:
        await self.archive.ado(self._delete_thread, thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, except those that the rest is rebuilt from."""
        self.archive.do(self._delete_for_runs, run_ids)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await self.archive.ado(self._delete_for_runs, run_ids)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints and writes of a thread under another name."""
        self.archive.do(_copy_thread, source_thread_id, target_thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await self.archive.ado(_copy_thread, source_thread_id, target_thread_id)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the newest checkpoint of each namespace and the ancestors it needs (`keep_latest`), or nothing (`delete`)."""
        self.archive.do(self._prune, thread_ids, strategy)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await self.archive.ado(self._prune, thread_ids, strategy)

    def get_next_version(self, current: str | int | float | None, channel: None) -> str:
        """Return a version that grows, and differs between two runs that continue the same one."""
        number = int(str(current).split(".")[0]) if current is not None else 0
        return f"{number + 1:032}.{random():016}"

    # --- in the archive's thread ---
    def _get(self, store: SqlStore, config: RunnableConfig) -> CheckpointTuple | None:
        thread, space, name = _checkpoint_place(config)
        with store.reading():
            row = store.checkpoint(thread, space, name)
            if row is None:
                return None
            body = self.serde.loads_typed((row.kind, row.body))
            values = store.checkpoint_values(thread, space, row.id)
            writes = store.checkpoint_writes(thread, space, row.id)
        load = self.serde.loads_typed
        return CheckpointTuple(
            config=_make_config(thread, space, row.id),
            checkpoint={**body, "channel_values": {name: load(value) for name, value in values.items()}},
            metadata=load((row.meta_kind, row.meta)),
            parent_config=_make_config(thread, space, row.parent) if row.parent else None,
            pending_writes=[(write.task, write.channel, load((write.kind, write.data))) for write in writes],
        )

    def _list(
        self,
        store: SqlStore,
        config: RunnableConfig | None,
        expected: dict[str, Any],
        before: RunnableConfig | None,
        limit: int | None,
    ) -> Sequence[RunnableConfig]:
        """Return where matching checkpoints are; each is read when the caller reaches it."""
        options = config["configurable"] if config else {}
        name, latest = (get_checkpoint_id(config) or "") if config else "", get_checkpoint_id(before) if before else ""
        rows = store.checkpoints(
            _optional_text(options.get("thread_id")), options.get("checkpoint_ns"), name, latest or ""
        )
        places: list[RunnableConfig] = []
        for row in rows:
            if limit is not None and len(places) >= limit:
                break
            if not expected or self._has_metadata(row, expected):
                places.append(_make_config(row.thread, row.space, row.id))
        return places

    def _has_metadata(self, row: GraphCheckpoint, expected: dict[str, Any]) -> bool:
        metadata = self.serde.loads_typed((row.meta_kind, row.meta))
        return all(metadata.get(key) == value for key, value in expected.items())

    def _put(
        self,
        store: SqlStore,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        thread, space, parent = _checkpoint_place(config)
        body = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        described = get_checkpoint_metadata(config, metadata)
        kind, data = self.serde.dumps_typed(body)
        meta_kind, meta = self.serde.dumps_typed(described)
        run, at = str(described.get("run_id") or ""), self.archive.clock()
        row = GraphCheckpoint(thread, space, checkpoint["id"], parent, run, kind, data, meta_kind, meta, at)
        with store.write():
            before = store.checkpoint_channels(thread, space, parent) if parent else {}
            store.put_checkpoint(row, self._channels(checkpoint, new_versions, before))
            self._mirror(store, thread, checkpoint["channel_values"], new_versions)
        return _make_config(thread, space, checkpoint["id"])

    def _mirror(self, store: SqlStore, thread: str, values: Mapping[str, Any], changed: ChannelVersions) -> None:
        """Add the new messages of the graph's state to the session of the thread. They are known by their ids."""
        for name in [one for one in changed if isinstance(values.get(one), list)]:
            fresh = []
            for message in reversed(values[name]):
                key = message.get("id") if isinstance(message, dict) else getattr(message, "id", None)
                turn = graph_turn(message)
                if turn is None or not key or store.items_by_key(MIRRORED, thread, [str(key)]):
                    break
                fresh.append((str(key), turn))
            if fresh:
                fresh.reverse()
                store.add_items(MIRRORED, thread, [(key, b"") for key, _ in fresh], self.archive.clock())
                data = FrameworkData("", thread), FrameworkData(MIRRORED, thread)
                self._sessions().add(store, thread, [turn for _, turn in fresh], *data)

    def _sessions(self) -> Mirror:
        return Mirror("langgraph", "@langgraph", self.archive.clock)

    def _forget_thread(self, store: SqlStore, thread: str) -> None:
        store.delete_thread(thread)
        store.delete_items(MIRRORED, thread)
        self._sessions().delete(store, thread)

    def _channels(
        self, checkpoint: Checkpoint, changed: ChannelVersions, before: dict[str, tuple[str, bytes]]
    ) -> Iterator[Channel]:
        for name, value in checkpoint["channel_values"].items():
            version = repr(checkpoint["channel_versions"].get(name))
            known, digest = before.get(name, ("", b""))
            if known == version and name not in changed:
                yield Channel(name, version, digest=digest)
            else:
                yield Channel(name, version, self.serde.dumps_typed(value))

    def _put_writes(
        self, store: SqlStore, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task: str, path: str
    ) -> None:
        thread, space, name = _checkpoint_place(config)
        rows = [
            PendingWrite(
                thread, space, name, task, WRITES_IDX_MAP.get(channel, idx), path, channel, *self.serde.dumps_typed(value)
            )
            for idx, (channel, value) in enumerate(writes)
        ]  # fmt: skip
        with store.write():
            store.put_checkpoint_writes(rows)

    def _history(
        self, store: SqlStore, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        load = self.serde.loads_typed
        found: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
        remaining = set(channels)
        with store.reading():
            row = store.checkpoint(*_checkpoint_place(config))
            while remaining and row is not None and row.parent:
                row = store.checkpoint(row.thread, row.space, row.parent)
                if row is None:
                    break
                here = (row.thread, row.space, row.id)
                for write in reversed(store.checkpoint_writes(*here)):
                    if write.channel in remaining:
                        value = load((write.kind, write.data))
                        found[write.channel]["writes"].append((write.task, write.channel, value))
                for channel, typed in store.checkpoint_values(*here, only=[*remaining]).items():
                    found[channel]["seed"] = load(typed)
                    remaining.discard(channel)
        for entry in found.values():
            entry["writes"].reverse()
        return found

    def _delete_thread(self, store: SqlStore, thread: str) -> None:
        with store.write():
            self._forget_thread(store, str(thread))

    def _delete_for_runs(self, store: SqlStore, runs: Sequence[str]) -> None:
        with store.write():
            obsolete: dict[str, set[tuple[str, str]]] = {}
            for thread, space, name in store.checkpoints_of_runs([str(run) for run in runs]):
                obsolete.setdefault(thread, set()).add((space, name))
            for thread, places in obsolete.items():
                rows = list(store.checkpoints(thread))
                kept = [row for row in rows if (row.space, row.id) not in places]
                store.delete_checkpoints(thread, places - self._find_needed(store, rows, kept))

    def _prune(self, store: SqlStore, threads: Sequence[str], strategy: str) -> None:
        if strategy not in STRATEGIES:
            raise UsageError(f"strategy {strategy!r} is not offered; say {' or '.join(STRATEGIES)}")
        with store.write():
            for thread in map(str, threads):
                if strategy == "delete":
                    self._forget_thread(store, thread)
                    continue
                rows = list(store.checkpoints(thread))
                newest = {row.space: row for row in reversed(rows)}  # newest first, so the newest wins
                kept = {(row.space, row.id) for row in newest.values()} | self._find_needed(
                    store, rows, newest.values()
                )
                store.delete_checkpoints(thread, {(row.space, row.id) for row in rows} - kept)

    def _find_needed(self, store: SqlStore, rows: Sequence[GraphCheckpoint], kept: Any) -> set[tuple[str, str]]:
        """Return the ancestors that delta channels of the kept ones are rebuilt from: back to a stored value of each."""
        by_place = {(row.space, row.id): row for row in rows}
        needed: set[tuple[str, str]] = set()
        for row in kept:
            metadata = self.serde.loads_typed((row.meta_kind, row.meta))
            missing = (
                set(metadata.get(_COUNTERS) or ()) - store.checkpoint_channels(row.thread, row.space, row.id).keys()
            )
            place = (row.space, row.parent)
            while missing and place in by_place:
                needed.add(place)
                missing -= store.checkpoint_channels(row.thread, *place).keys()
                place = (row.space, by_place[place].parent)
        return needed


def _copy_thread(store: SqlStore, source: str, target: str) -> None:
    with store.write():
        store.copy_thread(str(source), str(target))


def _checkpoint_place(config: RunnableConfig) -> tuple[str, str, str]:
    options = config["configurable"]
    return str(options["thread_id"]), options.get("checkpoint_ns") or "", get_checkpoint_id(config) or ""


def _make_config(thread: str, space: str, name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": space, "checkpoint_id": name}}


def _optional_text(value: Any) -> str | None:
    return None if value is None else str(value)
