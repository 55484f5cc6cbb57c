"""Events of an MCP server in the archive, so that a reconnecting client gets the events it missed, even after a restart.

    manager = StreamableHTTPSessionManager(app=server, event_store=ArchiveEvents("archive.db", "my server"))

The SDK names streams by the number of a request alone. A server for several clients needs a name for each of them, or one
client could get the events of another: `ArchiveEvents(archive, name)`.
"""

from __future__ import annotations

from os import PathLike

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp_types import JSONRPCMessage, jsonrpc_message_adapter

from everturn.integrations.archive import Archive, as_archive
from everturn.integrations.mirror import Mirror, event_turns
from everturn.model.archive import FrameworkData
from everturn.store.kept import ListItem
from everturn.store.sql_store import SqlStore

FAMILY = "events"


class ArchiveEvents(EventStore):
    """An `EventStore`. It keeps the last `keep` events of each stream; 0 keeps all."""

    def __init__(self, archive: Archive | str | PathLike[str], name: str = "", keep: int = 1000) -> None:
        self.archive = as_archive(archive)
        self.name, self.keep = name, keep

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Store an event and return its id, which the client may reconnect with."""
        data = b"" if message is None else jsonrpc_message_adapter.dump_json(message, by_alias=True, exclude_unset=True)
        number = await self.archive.ado(self._store, stream_id, data)
        return f"{number}/{stream_id}"

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send the later events of the same stream. Return the stream, or None if there is no such event."""
        number, _, stream_id = last_event_id.partition("/")
        if not (number.isascii() and number.isdigit()):
            return None
        missed = await self.archive.ado(self._events_after, stream_id, int(number))
        if missed is None:
            return None
        for item in missed:
            if item.data:  # empty: it only marks the beginning of a stream
                message = jsonrpc_message_adapter.validate_json(item.data)
                await send_callback(EventMessage(message, f"{item.n}/{stream_id}"))
        return stream_id

    def _store(self, store: SqlStore, stream: str, data: bytes) -> int:
        with store.write():
            number = store.add_items(FAMILY, self._owner(stream), [("", data)], self.archive.clock())[0]
            if data:
                mirror = Mirror("mcp", "@mcp", self.archive.clock)
                mirror.add(store, self.name or "events", event_turns(data), FrameworkData(FAMILY, self._owner(stream)))
            if self.keep and number > self.keep:
                store.delete_items(FAMILY, self._owner(stream), 0, number - self.keep)
        return number

    def _events_after(self, store: SqlStore, stream: str, number: int) -> list[ListItem] | None:
        with store.reading():
            if not store.items(FAMILY, self._owner(stream), 1, number - 1, number):
                return None
            return store.items(FAMILY, self._owner(stream), after=number)

    def _owner(self, stream: str) -> str:
        return f"{self.name}/{stream}"
