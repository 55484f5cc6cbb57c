"""A session written for Gemini CLI: among the chats of its project, whose folder it finds as the client does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from everturn.model.conversation import Block, CallEnd, CallStart, Message
from everturn.sources.contract import NewSession, SearchPlaces
from everturn.sources.gemini.program import marks, place, write

NEW = NewSession("11111111-2222-4333-8444-555555555555", "/home/ann/My Shop", 1_800_000_000_000, "Till", "m")


def folder(home: Path) -> str:
    return place(SearchPlaces(home, {}, "linux"), NEW).parents[1].name


def registry(home: Path, name: str) -> None:
    (home / ".gemini" / "tmp" / name).mkdir(parents=True)
    (home / ".gemini" / "projects.json").write_text(json.dumps({"projects": {NEW.workspace: name}}))


def test_a_workspace_that_the_client_knows_has_its_folder(tmp_path: Path) -> None:
    registry(tmp_path, "shop-3")
    path = place(SearchPlaces(tmp_path, {}, "linux"), NEW)
    assert path == tmp_path / ".gemini/tmp/shop-3/chats/session-2027-01-15T08-00-11111111.jsonl"


def test_a_folder_is_known_by_its_mark(tmp_path: Path) -> None:
    (tmp_path / ".gemini/tmp/elsewhere").mkdir(parents=True)
    (tmp_path / ".gemini/tmp/elsewhere/.project_root").write_text(NEW.workspace + "\n")
    assert folder(tmp_path) == "elsewhere"


def test_a_workspace_that_is_new_gets_a_folder_with_a_mark(tmp_path: Path) -> None:
    assert folder(tmp_path) == "my-shop"
    mark = tmp_path / ".gemini/tmp/my-shop/.project_root"
    assert dict(marks(SearchPlaces(tmp_path, {}, "linux"), NEW)) == {mark: NEW.workspace.encode()}


def test_the_folder_of_another_workspace_is_left_to_it(tmp_path: Path) -> None:
    registry(tmp_path, "my-shop")
    (tmp_path / ".gemini/tmp/my-shop/.project_root").write_text("/home/bob/my-shop")
    (tmp_path / ".gemini/tmp/my-shop-1").mkdir()
    assert folder(tmp_path) == "my-shop-2"


def test_a_registry_that_is_no_registry_is_as_none(tmp_path: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    for text in ("", "[]", '{"projects": 3}', '{"projects": {"/home/ann/My Shop": 3}}'):
        (tmp_path / ".gemini/projects.json").write_text(text)
        assert folder(tmp_path) == "my-shop"


def test_calls_stand_in_the_answer_with_what_they_gave_back() -> None:
    calls = tuple(Block("call", call=CallStart(name, "Bash", "shell", input={"command": name})) for name in "ab")
    results = tuple(Block("result", f"out {name}", result=CallEnd(name, name == "b")) for name in "ab")
    messages = (
        Message("user", "human", blocks=(Block("text", "go"),)),
        Message("assistant", "model", blocks=(Block("text", "well"), *calls)),
        Message("tool", "tool", "result", blocks=results),
    )
    found: list[dict[str, Any]] = list(
        map(json.loads, write(SearchPlaces(Path("/"), {}, "linux"), NEW, messages).splitlines())
    )
    assert [one.get("type") for one in found] == [None, "user", "gemini"]
    assert [call["result"][0]["functionResponse"]["response"] for call in found[2]["toolCalls"]] == [
        {"output": "out a"},
        {"error": "out b"},
    ]
    assert [call["status"] for call in found[2]["toolCalls"]] == ["success", "error"]
