"""An export written for OpenCode: ids that sort as the client sorts them, and a model that it has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from everturn.model.conversation import Block, CallEnd, CallStart, Message
from everturn.sources.contract import NewSession, SearchPlaces
from everturn.sources.opencode.program import name, take_in, write

AT = 1_794_742_811_895
NEW = NewSession(name("0" * 32, AT), "/home/ann/shop", AT, "Till", "gpt-5")


def written(home: Path, *messages: Message, new: NewSession = NEW) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(write(SearchPlaces(home, {}, "linux"), new, messages))
    return found


def ask(text: str, at: int | None = None) -> Message:
    return Message("user", "human", at=at, blocks=(Block("text", text),))


def test_its_id_runs_backwards_with_the_time_as_the_clients_do() -> None:
    assert NEW.id.startswith("ses_e20fe0308ffe")
    assert name("0" * 32, AT + 1) < name("0" * 32, AT)


def test_ids_count_up_and_stay_below_those_of_the_next_prompt(tmp_path: Path) -> None:
    found = written(tmp_path, *(ask(f"ask {n}") for n in range(300)))
    ids = [message["info"]["id"] for message in found["messages"]]
    assert ids == sorted(ids) and len(set(ids)) == 300
    assert ids[-1] < "msg_1df01fcf7001"


def test_times_never_run_backwards(tmp_path: Path) -> None:
    found = written(tmp_path, ask("a", 1000), ask("b", 500), ask("c"), ask("d", AT + 5))
    assert [one["info"]["time"]["created"] for one in found["messages"]] == [1000, 1000, AT, AT]


def test_a_failed_call_is_told_as_an_error(tmp_path: Path) -> None:
    calls = tuple(Block("call", call=CallStart(name, "Bash", "shell", input={"command": name})) for name in "ab")
    results = tuple(Block("result", f"out {name}", result=CallEnd(name, name == "b")) for name in "ab")
    found = written(
        tmp_path, ask("go"), Message("assistant", "model", blocks=calls), Message("tool", "tool", blocks=results)
    )
    states = [part["state"] for part in found["messages"][1]["parts"] if part["type"] == "tool"]
    assert [(state["status"], state.get("output"), state.get("error")) for state in states] == [
        ("completed", "out a", None),
        ("error", None, "out b"),
    ]
    assert found["messages"][1]["info"]["parentID"] == found["messages"][0]["info"]["id"]


def test_an_answer_without_a_prompt_hangs_on_an_empty_one(tmp_path: Path) -> None:
    found = written(tmp_path, Message("assistant", "model", blocks=(Block("text", "hello"),)))
    assert [one["info"]["role"] for one in found["messages"]] == ["user", "assistant"]


@pytest.mark.parametrize(
    ("files", "model"),
    [
        ({".config/opencode/opencode.json": '{"model": "local/llama/3"}'}, ("local", "llama/3")),
        ({".config/opencode/opencode.jsonc": '{ // mine\n "model": "a//b", /* x */ }'}, ("a", "/b")),
        ({".local/state/opencode/model.json": '{"recent": [{"providerID": "p", "modelID": "m"}]}'}, ("p", "m")),
        ({".config/opencode/opencode.json": "not json"}, ("openai", "gpt-5")),
        ({}, ("openai", "gpt-5")),
    ],
)
def test_the_model_is_one_that_the_client_has(tmp_path: Path, files: dict[str, str], model: tuple[str, str]) -> None:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text)
    info = written(tmp_path, ask("go"))["messages"][0]["info"]
    assert (info["model"]["providerID"], info["model"]["modelID"]) == model


def test_it_is_taken_in_by_the_clients_own_command() -> None:
    assert take_in(Path("/x/ses_1.json")) == ["opencode", "import", "/x/ses_1.json"]
