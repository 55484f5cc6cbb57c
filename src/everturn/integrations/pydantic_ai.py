"""Conversations of Pydantic AI in the archive: `store = ArchiveConversations("archive.db")`, then `load` and `save`.

A record and the entries it adds are written together or not at all. A record is replaced only if nobody has changed it
since it was read: `ConversationConflict` otherwise. Forks share entries. Deleting a conversation deletes the entries that
no other conversation reaches, in the same transaction; to find these it looks at all conversations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike

from pydantic import ConfigDict, TypeAdapter
from pydantic_ai.conversation_store import (  # type: ignore[import-not-found, unused-ignore]
    ConversationConflict,
    ConversationEntry,
    ConversationRecord,
    ConversationStore,
)

from everturn.clock import Clock, now
from everturn.errors import Conflict
from everturn.integrations.archive import Archive, as_archive
from everturn.integrations.mirror import Mirror, model_turns
from everturn.loop.turn_log import LoggedTurn
from everturn.model.archive import FrameworkData
from everturn.store.kept import ItemOwner, ListItem
from everturn.store.sql_store import SqlStore

RECORDS, ENTRIES = "conversations", "conversation entries"

_NEIGHBOURS = 256  # entries read together: those of one save are adjacent
_CONFIG = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
_RECORD: TypeAdapter[list[ConversationRecord]] = TypeAdapter(list[ConversationRecord], config=_CONFIG)
_ENTRY: TypeAdapter[list[ConversationEntry]] = TypeAdapter(list[ConversationEntry], config=_CONFIG)


class ArchiveConversations(ConversationStore):  # type: ignore[misc, unused-ignore]
    """A `ConversationStore`."""

    def __init__(self, archive: Archive | str | PathLike[str]) -> None:
        self.archive = as_archive(archive)

    async def read_record(self, conversation_id: str) -> ConversationRecord | None:
        """Return the record of a conversation, or None."""
        row = await self.archive.ado(SqlStore.item_owner, RECORDS, conversation_id)
        return _decode_record(row) if row is not None else None

    async def read_records(self, *, scope: str | None = None, limit: int | None = None) -> Sequence[ConversationRecord]:
        """Return all records, or those of a scope, newest first."""
        within = _encode_scope(scope) if scope is not None else None
        rows = await self.archive.ado(SqlStore.item_owners, RECORDS, within, limit)
        return [_decode_record(row) for row in rows]

    async def write_record(
        self,
        record: ConversationRecord,
        *,
        new_entries: Sequence[ConversationEntry] = (),
        expected_revision: str | None,
    ) -> None:
        """Store a record and its new entries together. Raise ConversationConflict if it has changed."""
        at = int(record.updated_at.timestamp() * 1_000_000)
        data = _RECORD.dump_json([record])
        row = ItemOwner(RECORDS, record.conversation_id, record.revision, _encode_scope(record.scope), data, at)
        entries = [(entry.id, _ENTRY.dump_json([entry])) for entry in new_entries]
        try:
            turns = {entry.id: model_turns(entry.message) for entry in new_entries}
            await self.archive.ado(_write, row, record.head_id, entries, expected_revision, self.archive.clock, turns)
        except Conflict as conflict:
            raise ConversationConflict(record.conversation_id) from conflict

    async def delete_record(self, conversation_id: str, *, expected_revision: str) -> None:
        """Delete a conversation and its unshared entries. Raise ConversationConflict if it has changed."""
        try:
            await self.archive.ado(_delete, conversation_id, expected_revision)
        except Conflict as conflict:
            raise ConversationConflict(conversation_id) from conflict

    async def read_entry(self, entry_id: str) -> ConversationEntry:
        """Return one entry. Raise LookupError if there is none of that id."""
        return (await self.archive.ado(_read_history, entry_id, 1))[0]

    async def read_history(self, head_id: str | None, *, limit: int | None = None) -> list[ConversationEntry]:
        """Return the entries up to `head_id`, oldest first, or the last `limit` of them."""
        return await self.archive.ado(_read_history, head_id, limit)


def _write(
    store: SqlStore,
    row: ItemOwner,
    head: str | None,
    entries: Sequence[tuple[str, bytes]],
    expected: str | None,
    clock: Clock,
    turns: Mapping[str, Sequence[LoggedTurn]],
) -> None:
    with store.write():
        store.set_item_owner(row, expected or "")
        store.add_items(ENTRIES, "", entries, clock())
        data = [FrameworkData(RECORDS, row.owner), *(FrameworkData(ENTRIES, "", key) for key in turns)]
        _sessions(clock).add(store, row.owner, [turn for some in turns.values() for turn in some], *data)
        if head is not None and not store.items_by_key(ENTRIES, "", [head]):
            raise Conflict(f"entry {head}")  # a fork of a deleted conversation


def _sessions(clock: Clock = now) -> Mirror:
    return Mirror("pydantic-ai", "@pydantic-ai", clock)


def _delete(store: SqlStore, conversation: str, expected: str) -> None:
    with store.write():
        _sessions().delete(store, conversation)
        row = store.item_owner(RECORDS, conversation)
        if row is None:
            raise Conflict(f"conversation {conversation}")
        store.delete_item_owner(RECORDS, conversation, expected)
        used: set[str] = set()
        for other in store.item_owners(RECORDS):
            _add_reachable(store, _decode_record(other), used)
        alone: set[str] = set()
        _add_reachable(store, _decode_record(row), alone, used)
        for item in store.items_by_key(ENTRIES, "", sorted(alone - used)).values():
            store.delete_items(ENTRIES, "", item.n, item.n)


def _add_reachable(store: SqlStore, record: ConversationRecord, reached: set[str], known: Iterable[str] = ()) -> None:
    """Add every entry of the record's history and of the branches it left."""
    for tip in (record.head_id, *record.branches):
        if tip is not None and tip not in reached and tip not in known:
            reached.update(entry.id for entry in _read_history(store, tip, None, reached))


def _read_history(
    store: SqlStore, head: str | None, limit: int | None, stop: Iterable[str] = ()
) -> list[ConversationEntry]:
    """Return the entries from `head` back to the first one, to one of `stop`, or `limit` of them; oldest first."""
    entries: list[ConversationEntry] = []
    near: dict[str, ListItem] = {}
    while head is not None and head not in stop and (limit is None or len(entries) < limit):
        if head not in near:
            near = _read_near(store, head, 1 if limit == 1 else _NEIGHBOURS)
        entry = _ENTRY.validate_json(near[head].data)[0]
        entries.append(entry)
        head = entry.parent_id
    entries.reverse()
    return entries


def _read_near(store: SqlStore, entry: str, most: int) -> dict[str, ListItem]:
    found = store.items_by_key(ENTRIES, "", [entry])
    if entry not in found:
        raise LookupError(f"there is no entry {entry!r} in the archive")
    if most == 1:
        return found
    return {item.key: item for item in store.items(ENTRIES, "", most, until=found[entry].n)}


def _decode_record(row: ItemOwner) -> ConversationRecord:
    return _RECORD.validate_json(row.data)[0]


def _encode_scope(scope: str | None) -> str:
    """Distinguish no scope from an empty one."""
    return "" if scope is None else f"={scope}"
