"""Since 2026 Codex repeats everything as `item_completed`: messages are read once, and a plan is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from everturn.sources.codex import SOURCE
from everturn.sources.contract import SourceCandidate
from tests.sources import goldens

SID = "01a1df01-c73e-7032-8a1d-3dfd39f7884f"
AT = "2026-11-15T11:39:58.175Z"


def item(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": "response_item", "payload": {"type": kind, **payload}}


def done(kind: str, **more: Any) -> dict[str, Any]:
    payload = {"type": "item_completed", "thread_id": SID, "turn_id": "t", "item": {"type": kind, "id": "i", **more}}
    return {"timestamp": AT, "type": "event_msg", "payload": payload}


def read(*records: dict[str, Any]) -> goldens.Whole:
    meta = {"timestamp": AT, "type": "session_meta", "payload": {"id": SID, "cwd": "/w", "cli_version": "0.166.0"}}
    data = b"".join(json.dumps(record).encode() + b"\n" for record in (meta, *records))
    return goldens.read(SOURCE, SourceCandidate(Path("rollout.jsonl"), "main", SID), data)


def test_what_was_said_twice_is_read_once() -> None:
    whole = read(
        item("message", role="user", content=[{"type": "input_text", "text": "go on"}]),
        done("UserMessage", content=[{"type": "text", "text": "go on", "text_elements": []}]),
        done("AgentMessage", content=[{"type": "Text", "text": "I do."}]),
        item("message", role="assistant", content=[{"type": "output_text", "text": "I do."}]),
        done("CommandExecution", command=["ls"], aggregated_output="files", exit_code=0),
        {"timestamp": AT, "type": "token_usage_record", "payload": {"thread_id": SID, "usage": {"input_tokens": 1}}},
    )
    assert whole.texts() == ["go on", "I do."]
    assert not [name for name, _, disposition in whole.census if disposition == "unknown"]


def test_what_was_said_only_there_is_read_too() -> None:
    whole = read(
        done("UserMessage", content=[{"type": "text", "text": "go on", "text_elements": []}]),
        {"timestamp": AT, "type": "event_msg", "payload": {"type": "task_complete", "turn_id": "t"}},
    )
    assert whole.texts("prompt") == ["go on"]


def test_a_plan_stands_nowhere_else() -> None:
    assert "first the till" in "\n".join(read(done("Plan", text="first the till")).texts())
