"""Messages are cut from the raw layer, whatever became of their bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from everturn.capture.policy import Policy
from everturn.model.archive import Session
from everturn.sessions.messages import Records, has_words, read_messages, read_turns
from everturn.sources.contract import all_sources
from everturn.store.contract import Store
from tests.recall.archives import Archive


def texts(store: Store, session: Session, first: int = 0, last: int | None = None) -> list[str]:
    found = read_messages(store, all_sources(), session, first, last)
    return ["\n".join(block.text for block in message.blocks) for _, message in found]


def test_messages_come_with_their_words_in_order(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"), archive.history.turn("会话\u2028", "好 ☕"))
    assert texts(archive.store, session) == ["ask", "reply", "会话\u2028", "好 ☕"]
    assert texts(archive.store, session, 1, 2) == ["reply", "会话\u2028"]
    assert texts(archive.store, session, 9) == []


def test_rows_and_messages_agree(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.tool_turn("ask", "ls", "a.py"), archive.history.line("user", "[Request interrupted by user]")
    )
    for row, message in read_messages(archive.store, all_sources(), session):
        assert (row.role, row.origin, row.kind, row.at) == (message.role, message.origin, message.kind, message.at)
        assert (row.start, row.size) == (message.start, message.size)


def test_records_are_those_of_the_file_byte_for_byte(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"), b"\n", archive.history.turn("again", "yes"))
    data = archive.history.file().read_bytes()
    records = Records(archive.store, all_sources(), session)
    cut = [records.record(row) for row in archive.store.messages(session.id)]
    assert cut == [line for line in data.split(b"\n") if line]


def test_neighbours_are_fetched_together(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    session = archive.take_in(*(archive.history.turn(f"ask {n}", "reply") for n in range(200)))
    reads: list[int] = []
    whole = archive.store.read_raw

    def counting(version: int, start: int, size: int) -> bytes:
        reads.append(size)
        return whole(version, start, size)

    monkeypatch.setattr(archive.store, "read_raw", counting)
    assert len(texts(archive.store, session)) == 400
    assert len(reads) == 1
    texts(archive.store, session, 7, 7)
    assert reads[1] < 2000, "one message must not cost a stretch of the file"


def test_a_record_longer_than_a_stretch_is_whole(archive: Archive) -> None:
    long = "long words " * 200_000
    session = archive.take_in(archive.history.turn("ask", long), archive.history.turn("short", "yes"))
    assert texts(archive.store, session) == ["ask", long, "short", "yes"]


def test_a_record_that_can_no_longer_be_viewed_is_shown_as_it_is(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"))
    blind: dict[str, Any] = {}
    (_, first), (_, second) = read_messages(archive.store, blind, session)
    assert (first.kind, second.kind) == ("unknown", "unknown")
    assert json.loads(first.blocks[0].text)["message"]["content"] == "ask"
    assert (first.role, second.origin) == ("user", "model")


def test_a_session_of_which_only_the_structure_was_kept_has_no_words(archive: Archive) -> None:
    session = archive.take_in(archive.history.tool_turn("secret ask", "ls", "a.py"), policy=Policy("structure"))
    assert not has_words(session)
    messages = [message for _, message in read_messages(archive.store, all_sources(), session)]
    assert [(message.origin, message.blocks, message.fidelity) for message in messages] == [
        ("human", (), "partial"),
        ("model", (), "partial"),
        ("tool", (), "partial"),
    ]


def test_erased_bytes_give_a_message_without_words(archive: Archive) -> None:
    session = archive.take_in(archive.history.turn("ask", "reply"))
    row = next(archive.store.messages(session.id, 1, 1))
    (chunk,) = archive.store.chunks(session.version)
    data = archive.store.read_chunk(chunk.digest)
    with archive.store.write():
        blank = data[: row.start] + b" " * row.size + data[row.start + row.size :]
        archive.store.put_chunks(session.version, [(chunk.start, blank)])
    (_, first), (_, second) = read_messages(archive.store, all_sources(), session)
    assert first.blocks[0].text == "ask"
    assert (second.blocks, second.fidelity) == ((), "partial")


def test_turns_come_with_their_steps_and_calls(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", "do both"),
        archive.use("Read", "t1", "msg_a", file_path="/a.py"),
        archive.use("Read", "t2", "msg_a", file_path="/b.py"),
        archive.back("t1", "a"),
        archive.back("t2", "b"),
        archive.history.turn("next", "done"),
    )
    first, second = read_turns(archive.store, session)
    assert [(call.call_id, call.step, call.batch, call.status) for call in first.calls] == [
        ("t1", 0, 0, "ok"),
        ("t2", 0, 1, "ok"),
    ]
    assert [step.n_calls for step in first.steps] == [2]
    assert [row.seq for row in first.rows] == [0, 1, 2, 3, 4]
    assert ([row.seq for row in second.rows], second.calls) == ([5, 6], [])


def test_a_result_is_found_wherever_it_came(archive: Archive) -> None:
    session = archive.take_in(
        archive.history.line("user", "go"),
        archive.use("Bash", "t1", command="sleep 9"),
        archive.history.turn("meanwhile", "fine"),
        archive.back("t1", "late words"),
    )
    (call,) = archive.store.calls(session.id)
    block = Records(archive.store, all_sources(), session).result(call)
    assert block is not None and block.text == "late words"
