"""One JSON document per session: complete, checkable, and small in memory."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from msgspec import structs

from everturn.capture.policy import Policy
from everturn.export.json_document import Clean, as_json
from everturn.model.archive import Session
from everturn.model.conversation import Block, Message
from everturn.secrets.redaction import redact_bytes
from everturn.sources.contract import all_sources
from tests.capture.history import OTHER, SID
from tests.recall.archives import AGENT, Archive

KEY = "AKIA" + "Q7XW2MZP4RTY5LNB"


def document(archive: Archive, session: Session, clean: Clean | None = None) -> dict[str, Any]:
    found: dict[str, Any] = json.loads("".join(as_json(archive.store, all_sources(), session, clean)))
    return found


def messages(found: dict[str, Any]) -> list[dict[str, Any]]:
    return sorted(
        (
            message
            for turn in found["turns"]
            for part in (turn, *turn["steps"])
            for message in part["messages"]
        ),
        key=lambda message: int(message["number"]),
    )  # fmt: skip


def busy(archive: Archive) -> Session:
    return archive.take_in(
        archive.history.line("user", "do both"),
        archive.use("Read", "t1", "msg_a", file_path="/home/ann/shop/a.py"),
        archive.back("t1", "a"),
        archive.use("Bash", "t2", "msg_a", command="false"),
        archive.back("t2", "Exit code 1", failed=True),
        archive.history.line("assistant", [{"type": "text", "text": "one failed"}]),
        archive.history.turn("and now", "done"),
        archive.back("nobody", "whose is this"),
    )


def test_the_session_is_described_with_its_source(archive: Archive) -> None:
    found = document(archive, busy(archive))
    assert (found["schema"], found["redacted"]) == ("everturn/session@1", False)
    session = found["session"]
    assert (session["id"], session["agent"], session["kind"], session["title"]) == (SID, AGENT, "main", None)
    assert (session["first_prompt"], session["workspace"], session["branch"]) == ("do both", "/home/ann/shop", "main")
    assert session["counts"] == {
        "turns": 2, "steps": 3, "messages": 9, "inherited": 0, "prompts": 2, "calls": 2, "errors": 1,
    }  # fmt: skip
    path = archive.history.file()
    assert (found["source"]["path"], found["source"]["version"]) == (str(path), 1)
    assert found["source"]["bytes"] == path.stat().st_size


def test_every_message_stands_in_it_once_and_rests_on_its_bytes(archive: Archive) -> None:
    found = document(archive, busy(archive))
    data = archive.history.file().read_bytes()
    assert [message["number"] for message in messages(found)] == list(range(1, 10))
    for message in messages(found):
        evidence = message["evidence"]
        record = data[evidence["start"] : evidence["start"] + evidence["size"]]
        assert sha256(record).hexdigest() == evidence["sha256"]
        assert json.loads(record)["uuid"] == message["native_id"]
        assert message["fidelity"] == "exact"


def test_blocks_are_as_found(archive: Archive) -> None:
    block = {"type": "thinking", "thinking": "hm \U0001f600", "signature": "s1gn", "extra": [1, {"a": None}]}
    session = archive.take_in(archive.history.line("user", "ask"), archive.history.line("assistant", [block]))
    answer = messages(document(archive, session))[1]
    assert answer["blocks"] == [{"kind": "thinking", "field": "thinking", "data": block}]


def test_turns_hold_steps_and_steps_their_calls(archive: Archive) -> None:
    first, second = document(archive, busy(archive))["turns"]
    assert (first["number"], second["number"]) == (1, 2)
    step, last = first["steps"]
    assert (step["number"], step["parallel"], last["parallel"]) == (1, True, False)
    calls = [(call["name"], call["status"], call["position"], call["batch"]) for call in step["calls"]]
    assert calls == [("Read", "ok", 1, 1), ("Bash", "error", 1, 2)]
    assert step["calls"][0]["artifacts"] == [{"action": "read", "path": "/home/ann/shop/a.py"}]
    assert (step["calls"][1]["exit_status"], step["calls"][1]["result_message"]) == (1, 5)
    assert [message["number"] for message in step["messages"]] == [2, 3, 4, 5]
    assert [message["number"] for message in first["messages"]] == [1]
    assert [call["status"] for call in second["calls"]] == ["orphan"]


def test_a_late_result_stands_once_in_the_turn_it_came_in(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", "go"),
        archive.use("Bash", "t1", command="sleep 9"),
        archive.history.turn("meanwhile", "fine"),
        archive.back("t1", "late"),
    )
    first, second = document(archive, session)["turns"]
    assert [message["number"] for message in second["messages"]] == [3, 5]
    assert second["messages"][1]["step"] == 1
    assert first["steps"][0]["calls"][0]["result_message"] == 5


def test_lineage_is_part_of_it(archive: Archive) -> None:
    data = archive.history.turn("first", "one")
    archive.take_in(data)
    fork = archive.take_in(archive.history.fork(data, OTHER), archive.history.turn("more", "two", OTHER), sid=OTHER)
    found = document(archive, fork)
    (parent,) = found["lineage"]["ancestors"]
    assert (parent["relation"], parent["id"], parent["shared_messages"]) == ("forked_from", SID, 2)
    assert [message["inherited"] for message in messages(found)] == [True, True, False, False]


def test_secrets_are_taken_out_and_it_stays_json(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", f"my key {KEY}"),
        archive.use("Bash", "t1", env={"DB_PASSWORD": "hunter2hunter2"}, command=f"export AWS={KEY}"),
        archive.back("t1", f"ok {KEY}"),
    )
    found = document(archive, session, redact_bytes)
    text = json.dumps(found)
    assert KEY not in text and "hunter2" not in text and "[REDACTED:" in text
    assert found["redacted"] is True
    assert [message["number"] for message in messages(found)] == [1, 2, 3]
    assert KEY in json.dumps(document(archive, session))


def test_nothing_in_it_acts_on_a_terminal(archive: Archive) -> None:
    hostile = "\x1b]0;title\x07 \x9b2J \u202e \x7f \u2028"
    session = archive.take_in(archive.history.turn(hostile, hostile))
    text = "".join(as_json(archive.store, all_sources(), session))
    assert not set("\x1b\x07\x9b\u202e\x7f\u2028") & set(text)
    assert json.loads(text)["turns"][0]["messages"][0]["blocks"][0]["text"] == hostile


def test_half_a_surrogate_pair_does_not_stop_it(archive: Archive) -> None:
    session = archive.take_in(archive.history.line("user", "half HALF of a pair").replace(b"HALF", b"\\ud83d"))
    half = Message("user", "human", blocks=(Block("text", "half \ud83d", "prompt", data={"text": "half \ud83d"}),))
    blunt = {AGENT: structs.replace(all_sources()[AGENT], view=lambda record: half)}
    for sources in (all_sources(), blunt):
        for clean in (None, redact_bytes):
            found = json.loads("".join(as_json(archive.store, sources, session, clean)))
            assert len(messages(found)) == 1
    assert messages(found)[0]["blocks"][0]["data"] == {"text": "half \ud83d"}


@pytest.mark.few(1)
def test_blocks_nested_beyond_reason_do_not_stop_it(archive: Archive) -> None:
    """At every depth around what can be walked: some are read but cannot be written as deep as they are."""
    line = archive.history.line("assistant", [{"type": "tool_use", "id": "t1", "name": "X", "input": "DEEP"}])
    depths = [10, *range(850, 1000), 5000]
    deep = [line.replace(b'"DEEP"', b'{"a":' * depth + b"1" + b"}" * depth) for depth in depths]
    session = archive.take_in(archive.history.line("user", "ask"), *deep)
    found = "".join(as_json(archive.store, all_sources(), session, redact_bytes))
    assert found.endswith("]}\n")
    assert found.count('"evidence":') == session.n_messages > 2


def test_a_session_without_words_keeps_its_structure(archive: Archive) -> None:
    session = archive.take_in(archive.history.tool_turn("secret", "ls", "a.py"), policy=Policy("structure"))
    found = document(archive, session)
    assert (found["session"]["words"], found["session"]["mode"]) == (False, "structure")
    assert [(message["blocks"], message["fidelity"]) for message in messages(found)] == [([], "partial")] * 3
    assert found["turns"][0]["steps"][0]["calls"][0]["name"] == "Bash"
    assert messages(found)[0]["evidence"]["sha256"] is None


@pytest.mark.few(1)
def test_it_is_written_in_pieces_no_longer_than_a_message(archive: Archive) -> None:
    session = archive.take_in(*(archive.history.turn(f"ask {n}", "x" * 2000) for n in range(300)))
    pieces = list(as_json(archive.store, all_sources(), session, redact_bytes))
    assert len(pieces) > 600
    assert max(map(len, pieces)) < 5000
