"""Sessions of the OpenAI Agents SDK in the archive: `Runner.run(agent, "…", session=ArchiveSession("id", "archive.db"))`.

The items of one call are stored completely or not at all, and are durable when the call returns, even if its caller is
cancelled. An unreadable item is an error that names it, never skipped: a history with a gap is another history. The runner
hands a step to the session when its tools have ended: use `tool_journal.ToolJournal` beside it, so that a process that dies
in between knows what it has done.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from os import PathLike
from typing import Any

from agents.memory import SessionSettings  # type: ignore[import-not-found, unused-ignore]
from agents.memory.session_settings import (  # type: ignore[import-not-found, unused-ignore]
    coerce_session_settings,
    resolve_session_limit,
)

from everturn.errors import NotAnArchive
from everturn.integrations.archive import Archive, as_archive
from everturn.integrations.mirror import Mirror, item_turns
from everturn.loop.turn_log import LoggedTurn
from everturn.model.archive import FrameworkData
from everturn.store.kept import ListItem
from everturn.store.sql_store import SqlStore

FAMILY = "session items"


class ArchiveSession:
    """The history of one session. Its methods are those of the SDK's `Session` protocol."""

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        archive: Archive | str | PathLike[str],
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.archive = as_archive(archive)
        self._own = archive is not self.archive
        self.session_settings = coerce_session_settings(session_settings if session_settings is not None else {})
        self._closed = False

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the latest `limit` items, oldest first. None: the limit of the settings; negative: all."""
        most = resolve_session_limit(limit, self.session_settings)
        if most is not None and most < 0:
            most = None
        return _decode_items(await self._archive().ado(SqlStore.items, FAMILY, self.session_id, most))

    async def add_items(self, items: list[Any]) -> None:
        """Append items, all of them or none."""
        archive = self._archive()
        if items:
            things = [("", _encode_item(item)) for item in items]
            mirror = Mirror("openai-agents", clock=archive.clock)
            await archive.ado(_add_items, self.session_id, things, archive.clock(), mirror, item_turns(items))

    async def pop_item(self) -> Any:
        """Remove and return the last item; None if there is none."""
        return await self._archive().ado(_pop_item, self.session_id)

    async def clear_session(self) -> None:
        """Remove all items, and the session in the archive."""
        await self._archive().ado(_clear_items, self.session_id)

    def close(self) -> None:
        """End the use of this session and close an archive that was opened for it."""
        if not self._closed and self._own:
            self.archive.close()
        self._closed = True

    async def _get_compaction_snapshot(self, limit: int, *, prune_prefix: Callable[[Any], bool] | None = None) -> Any:
        """Return a tail that the SDK's compaction can replace if it is unchanged."""
        from agents.memory.session import _CompactionSnapshot  # type: ignore[import-not-found, unused-ignore]

        rows = await self._archive().ado(SqlStore.items, FAMILY, self.session_id, limit + 1)
        tail = rows[-limit:] if limit > 0 else []

        def replace_suffix(start: int, output: list[Any]) -> Awaitable[bool]:
            things = [("", _encode_item(item)) for item in output]
            archive = self._archive()
            return archive.ado(_replace_items, tail[start:], things, prune_prefix, archive.clock())

        return _CompactionSnapshot(_decode_items(tail), len(rows) <= limit, replace_suffix)

    def _archive(self) -> Archive:
        if self._closed:
            raise RuntimeError(f"{type(self).__name__} is closed: {self.session_id}")
        return self.archive


def _add_items(
    store: SqlStore,
    session: str,
    things: Sequence[tuple[str, bytes]],
    at: int,
    mirror: Mirror,
    turns: Sequence[LoggedTurn],
) -> None:
    with store.write():
        store.add_items(FAMILY, session, things, at)
        mirror.add(store, session, turns, FrameworkData(FAMILY, session))


def _pop_item(store: SqlStore, session: str) -> Any:
    with store.write():
        rows = store.items(FAMILY, session, 1)
        items = _decode_items(rows)
        if not items:
            return None
        store.delete_items(FAMILY, session, rows[0].n)
        return items[0]


def _clear_items(store: SqlStore, session: str) -> None:
    with store.write():
        store.delete_items(FAMILY, session)
        Mirror("openai-agents").delete(store, session)


def _replace_items(
    store: SqlStore,
    expected: Sequence[ListItem],
    things: Sequence[tuple[str, bytes]],
    prune: Callable[[Any], bool] | None,
    at: int,
) -> bool:
    """Replace the last items, unless they have changed."""
    if not expected:
        return False
    session, first = expected[0].owner, expected[0].n
    with store.write():
        if store.items(FAMILY, session, len(expected)) != list(expected):
            return False
        expired = 0
        for row in store.items(FAMILY, session) if prune is not None else ():
            if row.n >= first or not prune or not prune(_decode_items([row])[0]):
                break
            expired = row.n
        if expired:
            store.delete_items(FAMILY, session, 0, expired)
        store.delete_items(FAMILY, session, first)
        store.add_items(FAMILY, session, things, at)
        return True


def _encode_item(item: Any) -> bytes:
    # Escaped, so that lone surrogates survive.
    return json.dumps(item).encode()


def _decode_items(rows: Sequence[ListItem]) -> list[Any]:
    items = []
    for row in rows:
        try:
            items.append(json.loads(row.data))
        except ValueError as failure:
            raise NotAnArchive(f"session {row.owner}", f"its item {row.n} is damaged") from failure
    return items
