"""Many readers at once while the archive is written to: every one of them gets its page."""

from __future__ import annotations

import threading

import pytest

from tests.web.server import Served

READERS, EACH = 50, 6
PATHS = ("/", "/sessions", "/s/1", "/s/1?turn=3", "/search?q=question&part=1", "/api/sessions", "/paths/tools?part=1")


@pytest.mark.slow
def test_fifty_readers_are_served_while_a_sync_writes(full: Served) -> None:
    wrong: list[str] = []
    reading = threading.Event()
    reading.set()

    def read(reader: int) -> None:
        for turn in range(EACH):
            path = PATHS[(reader + turn) % len(PATHS)]
            answer = full.ask(path)
            if answer.status != 200 or not answer.body:
                wrong.append(f"{path}: {answer.status}")

    readers = [threading.Thread(target=read, args=(number,)) for number in range(READERS)]
    for one in readers:
        one.start()
    history, written = full.taken.history, 0
    while any(one.is_alive() for one in readers):
        sid = f"{written:08d}-7777-4333-8444-555555555555"
        full.taken.take_in(history.turn(f"question {written}", "yes", sid=sid), sid=sid)
        written += 1
    for one in readers:
        one.join()
    assert wrong == []
    assert written > 0
    assert f"question {written - 1}" in full.ask("/sessions").text


def test_a_broken_connection_is_opened_again(full: Served) -> None:
    assert full.ask("/sessions").status == 200
    for store, _ in list(full.site.archive._open.values()):
        store.driver.close()  # type: ignore[attr-defined]
    for _ in range(8):
        assert full.ask("/sessions").status == 200
