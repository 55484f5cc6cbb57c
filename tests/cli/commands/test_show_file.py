"""`everturn show --file PATH --at TURN`: a file as it was when a turn began, and the copies that an agent made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from everturn.capture.policy import Policy
from everturn.model.vocabulary import BACKUP
from tests.capture.history import FORMAT, SID, hits, run
from tests.cli.desk import KEY, Desk

FILE = "/home/ann/shop/cart.py"
PROMPTS = [f"{n}0000000-0000-4000-8000-00000000000{n}" for n in range(1, 5)]


def _copy(desk: Desk, name: str, text: str, sid: str = SID) -> Path:
    path = desk.archive.history.root / "file-history" / sid / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _snapshot(prompt: str, is_update: bool, **named: str | None) -> bytes:
    copies = {f"{name}.py": {"backupFileName": copy, "version": 1} for name, copy in named.items()}
    snapshot = {"messageId": prompt, "trackedFileBackups": copies, "timestamp": "2026-03-01T10:00:00.000Z"}
    record = {"type": "file-history-snapshot", "messageId": prompt, "snapshot": snapshot, "isSnapshotUpdate": is_update}
    return json.dumps(record).encode() + b"\n"


def _turn(desk: Desk, number: int, *records: bytes) -> bytes:
    history = desk.archive.history
    asked = history.line("user", f"change {number}", uuid=PROMPTS[number - 1])
    return asked + b"".join(records) + history.line("assistant", [{"type": "text", "text": "done"}])


def _changed(desk: Desk) -> None:
    """Turn 1 changes nothing, turns 2 and 3 change cart.py, turn 3 makes new.py, turn 4 changes nothing."""
    _copy(desk, "00aa00aa00aa00aa@v1", "price = 1\n")
    _copy(desk, "00aa00aa00aa00aa@v2", f"price = 2  # {KEY}\n")
    desk.take_in(
        _snapshot(PROMPTS[0], False), _turn(desk, 1),
        _snapshot(PROMPTS[1], False), _turn(desk, 2, _snapshot(PROMPTS[1], True, cart="00aa00aa00aa00aa@v1")),
        _snapshot(PROMPTS[2], False, cart="00aa00aa00aa00aa@v2"),
        _turn(desk, 3, _snapshot(PROMPTS[2], True, cart="00aa00aa00aa00aa@v2", new=None)),
        _turn(desk, 4),
    )  # fmt: skip


def test_a_file_is_shown_as_it_was_when_a_turn_began(desk: Desk) -> None:
    _changed(desk)
    for turn, text in ((1, "price = 1\n"), (2, "price = 1\n"), (3, "price = 2")):
        code, out, err = desk.run("show", SID, "--file", "cart.py", "--at", str(turn))
        assert (code, out.startswith(text)) == (0, True)
        assert f"{FILE}: the copy 00aa00aa00aa00aa@v{1 + turn // 3} that the agent made in turn" in err
    assert KEY not in desk.run("show", SID, "--file", FILE, "--at", "3")[1]
    (item,) = desk.json("show", SID, "--file", "cart.py", "--at", "3", "--reveal")["items"]
    assert item["text"] == f"price = 2  # {KEY}\n"
    code, _, err = desk.run("show", SID, "--file", "new.py", "--at", "2")
    assert code == 3
    assert "the agent found no such file in turn 3" in err


def test_a_file_that_cannot_be_told_is_one_sentence(desk: Desk) -> None:
    _changed(desk)
    for words, code in ((("cart.py", "--at", "end"), 3), (("car.py",), 3), (("cart.py", "--at", "soon"), 2)):
        assert desk.run("show", SID, "--file", *words)[0] == code
    (file, _), _ = desk.archive.store.files_of(FORMAT, SID, BACKUP)
    with desk.archive.store.write():
        desk.archive.store.delete_file(file.id)
    assert "no copy was made" in desk.run("show", SID, "--file", "cart.py", "--at", "1")[2]


def test_edits_tell_what_no_copy_does(desk: Desk) -> None:
    archive = desk.archive
    other = "/home/ann/shop/api/cart.py"
    desk.take_in(
        _turn(desk, 1, archive.use("Write", "t1", file_path=FILE, content="a\nb\n"), archive.back("t1", "ok")),
        _turn(
            desk, 2, archive.use("Edit", "t2", file_path=FILE, old_string="b", new_string="c"),
            archive.back("t2", "ok", originalFile="a\nb\nby hand\n", filePath=FILE),
            archive.use("Write", "t3", file_path=other, content="x\n"), archive.back("t3", "ok"),
        ),
    )  # fmt: skip
    for turn, text in (("2", "a\nb\nby hand\n"), ("end", "a\nc\nby hand\n")):
        code, out, _ = desk.run("show", SID, "--file", FILE, "--at", turn)
        assert (code, out) == (0, text)
    code, _, err = desk.run("show", SID, "--file", "cart.py")
    assert code == 2
    assert other in err and FILE in err


def test_copies_are_forgotten_with_their_session_and_do_not_come_back(desk: Desk) -> None:
    _changed(desk)
    store = desk.archive.store
    assert [file.parent for file, _ in store.files_of(FORMAT, SID, BACKUP)] == [SID, SID]
    assert hits(store, "price") == []  # the words of a copy are not those of a conversation
    assert desk.run("forget", SID, "--yes")[0] == 0
    assert store.files_of(FORMAT, SID, BACKUP) == []
    desk.take_in(_turn(desk, 1), sid="99999999-2222-4333-8444-555555555555")
    assert store.files_of(FORMAT, SID, BACKUP) == []


@pytest.mark.parametrize(("mode", "kept"), [("off", None), ("structure", b""), ("redacted", b"price = 2  # [")])
def test_copies_follow_the_rule_of_their_session(desk: Desk, mode: str, kept: bytes | None) -> None:
    _copy(desk, "00aa00aa00aa00aa@v2", f'price = 2  # {KEY} "cwd":"/elsewhere"\n')
    store, history = desk.archive.store, desk.archive.history
    history.write(_turn(desk, 1))
    run(store, history, Policy("full", rules=(("/home/ann/shop", mode),)))
    found = store.files_of(FORMAT, SID, BACKUP)
    assert [store.read_raw(version.id, 0, 13) for _, version in found] == ([] if kept is None else [kept[:13]])
