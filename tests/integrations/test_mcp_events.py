"""A client that comes back gets what it has missed, from a server that was restarted too."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everturn.integrations.archive import Archive

pytestmark = pytest.mark.needs("module:mcp")


def events(archive: Archive, name: str = "", keep: int = 1000) -> Any:
    from everturn.integrations.mcp_events import ArchiveEvents

    return ArchiveEvents(archive, name, keep)


def test_what_was_missed_is_sent_once_and_in_order(archive: Archive) -> None:
    from mcp_types import JSONRPCNotification

    store = events(archive)
    sent: list[tuple[str, str]] = []

    async def callback(event: Any) -> None:
        sent.append((event.event_id, event.message.method))

    async def talk() -> None:
        first = await store.store_event("1", None)
        ids = [await store.store_event("1", JSONRPCNotification(jsonrpc="2.0", method=f"m/{n}")) for n in range(3)]
        await store.store_event("2", JSONRPCNotification(jsonrpc="2.0", method="elsewhere"))
        assert await store.replay_events_after(ids[0], callback) == "1"
        assert sent == [(ids[1], "m/1"), (ids[2], "m/2")]
        assert await store.replay_events_after(first, callback) == "1"
        assert [method for _, method in sent[2:]] == ["m/0", "m/1", "m/2"]

    asyncio.run(talk())


@pytest.mark.parametrize("unknown", ["", "7", "x/1", "99/1", "²/1", "1/none"])
def test_an_unknown_event_replays_nothing(archive: Archive, unknown: str) -> None:
    store = events(archive)

    async def never(event: Any) -> None:
        raise AssertionError(event)

    async def ask() -> str | None:
        await store.store_event("1", None)
        return str(await store.replay_events_after(unknown, never))

    assert asyncio.run(ask()) == "None"


def test_events_outlive_the_server_and_are_not_those_of_another(tmp_path: Path) -> None:
    from mcp_types import JSONRPCNotification

    message = JSONRPCNotification(jsonrpc="2.0", method="m", params={"text": "né"})
    got: list[object] = []

    async def callback(event: Any) -> None:
        got.append(event.message)

    with Archive(tmp_path / "archive.db") as first:
        number = asyncio.run(events(first, "server").store_event("1", None))
        asyncio.run(events(first, "server").store_event("1", message))
    with Archive(tmp_path / "archive.db") as second:
        assert asyncio.run(events(second, "other").replay_events_after(number, callback)) is None
        assert asyncio.run(events(second, "server").replay_events_after(number, callback)) == "1"
    assert got == [message]


def test_only_so_many_are_kept_and_numbers_are_not_given_twice(archive: Archive) -> None:
    store = events(archive, keep=2)
    ids = [asyncio.run(store.store_event("1", None)) for _ in range(5)]
    assert len(set(ids)) == 5
    assert archive.do(lambda kept: len(kept.items("events", "/1"))) == 2
