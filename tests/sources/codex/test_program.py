"""A rollout written for Codex: in the folder of its day, items for the model and events for the screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

from everturn.model.conversation import Block, CallEnd, CallStart, Message
from everturn.sources.codex.program import name, place, write
from everturn.sources.contract import NewSession, SearchPlaces

AT = 1_800_000_000_000
RANDOM = "0123456789abcdef0123456789abcdef"
NEW = NewSession(name(RANDOM, AT), "/home/ann/shop", AT, "Till", "m")


def records(*messages: Message) -> list[dict[str, Any]]:
    return [json.loads(line) for line in write(SearchPlaces(Path("/"), {}, "linux"), NEW, messages).splitlines()]


def test_its_id_begins_with_the_time() -> None:
    assert UUID(NEW.id).version == 7
    assert UUID(NEW.id).int >> 80 == AT


def test_it_lies_in_the_folder_of_the_day() -> None:
    file = f"2027/01/15/rollout-2027-01-15T08-00-00-{NEW.id}.jsonl"
    assert place(SearchPlaces(Path("/home/ann"), {}, "linux"), NEW) == Path("/home/ann/.codex/sessions") / file
    assert place(SearchPlaces(Path("/"), {"CODEX_HOME": "/c"}, "linux"), NEW) == Path("/c/sessions") / file


def test_what_is_said_is_an_item_for_the_model_and_an_event_for_the_screen() -> None:
    found = records(
        Message("user", "human", blocks=(Block("text", "go"),)),
        Message("assistant", "model", blocks=(Block("text", "on"),)),
    )
    assert [(one["type"], one["payload"].get("type")) for one in found] == [
        ("session_meta", None),
        ("event_msg", "task_started"),
        ("response_item", "message"),
        ("event_msg", "user_message"),
        ("event_msg", "agent_message"),
        ("response_item", "message"),
        ("event_msg", "task_complete"),
    ]


def test_a_call_has_its_arguments_as_text_and_its_output_behind_it() -> None:
    call = Block("call", call=CallStart("a", "Bash", "shell", command="ls", input={"command": "ls"}))
    result = Block("result", "files", result=CallEnd("a"))
    found = records(Message("assistant", "model", blocks=(call,)), Message("tool", "tool", "result", blocks=(result,)))
    items = [one["payload"] for one in found if one["type"] == "response_item"]
    assert items == [
        {"type": "function_call", "name": "exec_command", "arguments": '{"cmd":"ls"}', "call_id": "a"},
        {"type": "function_call_output", "call_id": "a", "output": "files"},
    ]


def test_a_call_of_its_own_kind_stays_of_that_kind() -> None:
    item = {"type": "custom_tool_call", "call_id": "old", "name": "apply_patch", "input": "*** Begin Patch"}
    call = Block("call", call=CallStart("a", "apply_patch", "edit", input="*** Begin Patch"), data=item)
    output = {"type": "custom_tool_call_output", "call_id": "old", "output": "ok"}
    result = Block("result", "ok", result=CallEnd("a"), data=output)
    found = records(Message("assistant", "model", blocks=(call,)), Message("tool", "tool", blocks=(result,)))
    items = [one["payload"] for one in found if one["type"] == "response_item"]
    assert items == [{**item, "call_id": "a"}, {**output, "call_id": "a"}]
