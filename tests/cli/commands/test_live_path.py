"""What a person took back is a stored fact: show marks it, search, restore and resume leave it out, stats count it apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everturn.cli import main
from everturn.model.archive import MessageRow, Turn
from everturn.store.contract import open_store
from tests.capture.history import SID
from tests.cli.desk import Desk

Records = list[dict[str, Any]]

#: What is asked and answered in each session, by whether it is still on the path.
LIVE = ("plan the shop", "planned", "use the walnut cart", "walnut it is")
GONE = ("use the banana cart", "banana it is")


def _claude() -> Records:
    def said(number: int, role: str, text: str, parent: int) -> dict[str, Any]:
        return {
            "type": role, "uuid": _uuid(number), "parentUuid": _uuid(parent), "sessionId": SID, "cwd": "/home/ann/shop",
            "timestamp": f"2026-03-01T10:00:{number:02d}.000Z", "version": "2.1.50", "isSidechain": False,
            "message": {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]},
        }  # fmt: skip

    return [
        said(1, "user", LIVE[0], 0),
        said(2, "assistant", LIVE[1], 1),
        said(3, "user", GONE[0], 2),
        said(4, "assistant", GONE[1], 3),
        said(5, "user", LIVE[2], 2),
        said(6, "assistant", LIVE[3], 5),
    ]


def _uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def _codex() -> Records:
    def said(role: str, text: str) -> dict[str, Any]:
        kind = "input_text" if role == "user" else "output_text"
        return {
            "type": "response_item",
            "payload": {"type": "message", "role": role, "content": [{"type": kind, "text": text}]},
        }

    meta = {"type": "session_meta", "payload": {"id": SID, "cwd": "/home/ann/shop", "cli_version": "0.166.0"}}
    back = {"type": "event_msg", "payload": {"type": "thread_rolled_back", "num_turns": 1}}
    before, after = _dialogue((*LIVE[:2], *GONE)), _dialogue(LIVE[2:])
    records = [meta, *(said(*one) for one in before), back, *(said(*one) for one in after)]
    return [{"timestamp": f"2026-03-01T10:00:{n:02d}.000Z", **one} for n, one in enumerate(records)]


def _gemini() -> Records:
    def said(number: int, role: str, text: str) -> dict[str, Any]:
        content = [{"text": text}] if role == "user" else text
        kind = "user" if role == "user" else "gemini"
        return {
            "id": f"m{number}",
            "timestamp": f"2026-03-01T10:00:{number:02d}.000Z",
            "type": kind,
            "content": content,
        }

    head = {"sessionId": SID, "projectHash": "p", "startTime": "2026-03-01T10:00:00.000Z", "kind": "main"}
    told = [said(n, *one) for n, one in enumerate(_dialogue((*LIVE[:2], *GONE, *LIVE[2:])))]
    return [head, *told[:4], {"$rewindTo": "m2"}, *told[4:]]


def _dialogue(texts: tuple[str, ...]) -> list[tuple[str, str]]:
    return [("assistant" if number % 2 else "user", text) for number, text in enumerate(texts)]


AGENTS = {
    "claude_code": (f"{SID}.jsonl", _claude),
    "codex": (f"rollout-2026-03-01T10-00-00-{SID}.jsonl", _codex),
    "gemini": (f"session-2026-03-01T10-00-{SID[:8]}.jsonl", _gemini),
}


@pytest.fixture(params=AGENTS)
def transcript(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Records]:
    name, records = AGENTS[request.param]
    return tmp_path / name, records()


def _write(path: Path, records: Records) -> None:
    path.write_bytes(b"".join(json.dumps(one).encode() + b"\n" for one in records))


def _rows(desk: Desk, db: str = "") -> tuple[list[MessageRow], list[Turn]]:
    store = open_store(db) if db else desk.archive.store
    session = store.sessions_like(SID)[0].id
    found = list(store.messages(session)), store.turns(session)
    if db:
        store.close()
    return found


def test_every_surface_knows_what_was_taken_back(desk: Desk, transcript: tuple[Path, Records]) -> None:
    path, records = transcript
    _write(path, records)
    assert desk.run("add", str(path))[0] == 0

    turns = desk.json("show", SID)["items"]
    told = {one["text"]: "taken_back" in one for turn in turns for one in turn["passages"]}
    assert {text: told[text] for text in (*LIVE, *GONE)} == dict.fromkeys(LIVE, False) | dict.fromkeys(GONE, True)
    assert [turn["taken_back"] for turn in turns] == [False, True, False]
    assert "taken back" in desk.run("show", SID)[1]

    code, out, said = desk.run("search", "banana")
    assert (code, out.strip()) == (3, "") and "taken-back:yes" in said
    assert [one["taken_back"] for one in desk.json("search", "banana taken-back:yes")["items"]] == [True, True]
    assert len(desk.json("search", "walnut")["items"]) == 2

    document = desk.run("restore", SID)[1]
    assert "walnut" in document and "banana" not in document and "took back" in document
    assert "banana" not in desk.run("restore", SID, "--dump-turns")[1]
    if path.name.startswith(SID):  # it was on the path until the next turn began; others take back at once
        assert "banana" in desk.run("restore", SID, "--max-turns", "2")[1]
    assert "banana" not in desk.run("handoff", SID, "--print")[1]
    stats = desk.json("stats")["taken_back"]
    assert (stats["sessions"], stats["turns"]) == (1, 1)


def test_rows_are_the_same_read_at_once_in_pieces_and_again(
    desk: Desk, transcript: tuple[Path, Records], tmp_path: Path
) -> None:
    path, records = transcript
    _write(path, records)
    other = tmp_path / "other.db"
    assert desk.run("add", str(path))[0] == 0
    whole = _rows(desk)
    for end in range(1, len(records) + 1):
        _write(path, records[:end])
        assert main(["add", str(path), "--db", str(other)]) == 0
    assert _rows(desk, str(other)) == whole
    assert desk.run("rebuild")[0] == 0
    assert _rows(desk) == whole
