"""A page that is open hears of what agents write, and what is written is there when it asks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from everturn.capture.policy import Policy
from everturn.capture.sync import SyncJob, sync_all, watch_sources
from everturn.clock import now
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import Store
from tests.web.server import Served, served


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Served]:
    """A server that follows the agent's folder."""
    places = SearchPlaces(tmp_path / "home", {}, "linux", {"claude_code": (tmp_path / "agent",)})
    (tmp_path / "agent" / "projects").mkdir(parents=True)

    def job(store: Store) -> SyncJob:
        return SyncJob(store, all_sources(), places, Policy(), "box", "", now)

    def sync(store: Store, step: Callable[[int, int], None]) -> dict[str, Any]:
        return {"new": sync_all(job(store)).new}

    def watch(store: Store, stop: Event, tell: Callable[[], None]) -> None:
        watch_sources(job(store), stop, lambda report: tell())

    with served(tmp_path, sync=sync, watch=watch) as made:
        yield made


def next_event(stream: HTTPResponse) -> dict[str, Any]:
    while True:
        line = stream.readline().decode()
        assert line, "the events have ended"
        if line.startswith("data: "):
            found: dict[str, Any] = json.loads(line.removeprefix("data: "))
            return found


def test_what_an_agent_writes_is_told_to_every_open_page(live: Served) -> None:
    connections = [HTTPConnection("127.0.0.1", live.port, timeout=60) for _ in range(2)]
    streams = []
    for one in connections:
        one.request("GET", "/events")
        streams.append(one.getresponse())
        assert streams[-1].headers["content-type"].startswith("text/event-stream")
        told = next_event(streams[-1])
        assert told["watching"], told
    history = live.taken.history
    for number in (1, 2):
        history.grow(history.turn(f"question {number}", "answer"))
        for stream in streams:
            next_event(stream)
        while f"question {number}" not in live.ask("/s/1?part=1").text:
            next_event(streams[0])
    for one in connections:
        one.close()


def test_a_button_takes_in_what_is_new(live: Served) -> None:
    assert 'data-job="/api/sync"' in live.ask("/health").text
    assert live.done(live.change("/api/sync"))["state"] == "done"


def test_a_server_that_only_shows_the_archive_does_not_sync(full: Served) -> None:
    assert 'data-job="/api/sync"' not in full.ask("/health").text
    assert "--no-sync" in full.change("/api/sync").json["error"]
