"""Sessions that programs send over HTTP are in the archive when they are answered, and nothing else is taken."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any

import pytest

from benchmarks.interchange import facts
from everturn.capture import receiver
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.receiver import receive
from everturn.errors import EverturnError
from everturn.export.interchange import as_standard, send
from everturn.model.archive import Session
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import Store, open_store
from tests.capture.history import SID, History, run
from tests.waiting import PATIENCE

FORMAT = "otel"
(WIRE,) = (source.wire for source in all_sources().values() if source.wire is not None)
JSON, PROTOBUF = "application/json", "application/x-protobuf"


@contextmanager
def receiving(folder: Path) -> Iterator[str]:
    """A receiver beside the archive in a folder; yields its address."""
    addresses: Queue[str] = Queue()
    stop = Event()

    def serve() -> None:
        with closing(open_store(str(folder / "archive.db"))) as store:
            job = SyncJob(store, all_sources(), SearchPlaces(folder, {}, "linux"), Policy(), "box", "ann", lambda: 1)
            receive(job, folder / "received", 0, addresses.put, lambda report: None, stop)

    thread = Thread(target=serve)
    thread.start()
    try:
        yield addresses.get(timeout=PATIENCE)
    finally:
        stop.set()
        thread.join()
    assert not (folder / "received").exists()


def post(address: str, body: bytes, kind: str = JSON, path: str = "/v1/traces", **headers: str) -> tuple[int, str]:
    host = address.removeprefix("http://")
    connection = http.client.HTTPConnection(host, timeout=PATIENCE)
    given = {"Host": host, "Content-Type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
    connection.request("POST", path, body, given)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


def request(conversation: str, number: int, said: str, reply: str) -> bytes:
    def pair(name: str, value: Any) -> dict[str, Any]:
        return {"key": name, "value": {"stringValue": value if isinstance(value, str) else json.dumps(value)}}

    def message(role: str, text: str) -> list[dict[str, Any]]:
        return [{"role": role, "parts": [{"type": "text", "content": text}]}]

    span = {
        "traceId": "0a" * 16, "spanId": f"{number:016x}", "name": "chat", "kind": 3,
        "startTimeUnixNano": f"{1_772_000_000 + number}000000000", "endTimeUnixNano": f"{1_772_000_001 + number}000000000",
        "attributes": [
            pair("gen_ai.operation.name", "chat"), pair("gen_ai.conversation.id", conversation),
            pair("gen_ai.input.messages", message("user", said)), pair("gen_ai.output.messages", message("assistant", reply)),
        ],
    }  # fmt: skip
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def found(folder: Path, conversation: str) -> tuple[Session, Store]:
    store = open_store(str(folder / "archive.db"))
    (session,) = [one for one in store.sessions_of(FORMAT, conversation) if one.state == "current"]
    return session, store


def test_a_conversation_grows_by_requests_of_any_form_and_goes_on_in_another_run(tmp_path: Path) -> None:
    first, second, third = (
        request("c1", n, word, f"re {word}") for n, word in enumerate(("walrus", "seal", "otter"), 1)
    )
    with receiving(tmp_path) as address:
        assert post(address, first) == (200, "{}")
        assert post(address, WIRE.pack(second), PROTOBUF) == (200, "")
        assert post(address, gzip.compress(second), Content_Encoding="gzip")[0] == 200  # sent again: no answer came
        assert post(address, b'{"resourceSpans":[]}')[0] == 200
    with receiving(tmp_path) as address:
        assert post(address, third)[0] == 200
    session, store = found(tmp_path, "c1")
    assert (session.n_turns, session.n_prompts, session.n_messages) == (3, 3, 6)
    store.close()


def test_what_does_not_belong_here_is_refused_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver, "LARGEST_BODY", 10_000)
    monkeypatch.setattr(receiver, "LARGEST_UNPACKED", 50_000)
    monkeypatch.setattr(receiver, "LARGEST_CONVERSATION", 9_000)
    good = request("c1", 1, "walrus", "yes")
    with receiving(tmp_path) as address:
        answers = {
            "another host": post(address, good, Host="example.com"),
            "a page": post(address, good, Origin="https://example.com"),
            "another path": post(address, good, path="/v1/logs"),
            "another kind": post(address, good, "text/html"),
            "too large": post(address, b" " * 10_001),
            "a bomb": post(address, gzip.compress(b" " * 60_000), Content_Encoding="gzip"),
            "half of it": post(address, gzip.compress(good)[:-9], Content_Encoding="gzip"),
            "no protobuf": post(address, b"\n\xff\xff", PROTOBUF),
            "a long conversation": post(address, request("c2", 1, "x" * 9_000, "no")),
        }
        assert {name: status for name, (status, _) in answers.items()} == {
            "another host": 421, "a page": 403, "another path": 404, "another kind": 415, "too large": 413,
            "a bomb": 413, "half of it": 400, "no protobuf": 400, "a long conversation": 413,
        }  # fmt: skip
        assert all(len(text.splitlines()) == 1 for _, text in answers.values())
        assert post(address, good)[0] == 200
    session, store = found(tmp_path, "c1")
    assert [one.native_id for one in store.sessions_of(FORMAT, "c2")] == []
    assert session.n_messages == 2
    store.close()


def test_a_session_that_is_sent_arrives_as_the_same_session(tmp_path: Path) -> None:
    history = History(tmp_path / "agent")
    history.write(history.tool_turn("count the walruses", "ls", "three") + history.turn("and seals?", "none"))
    with closing(open_store("memory:")) as here:
        run(here, history)
        (session,) = here.sessions_of("claude_code", SID)
        lines = list(as_standard(here, all_sources(), session, FORMAT))
        with receiving(tmp_path) as address:
            for _ in range(2):
                assert send(WIRE, address, {}, lines) == 1
            with pytest.raises(EverturnError, match="answers with status 404"):
                send(WIRE, f"{address}/elsewhere", {}, lines)
        arrived, there = found(tmp_path, SID)
        assert facts(there, arrived) == facts(here, session)
        there.close()
    with pytest.raises(EverturnError, match="cannot be reached"):
        send(WIRE, address, {}, lines)
