"""What everturn gives back of a recording: read through its command line into an archive of its own.

Only the public surface is used (`add`, `sessions --json`, `export --as json`), so that a score does not depend on how the
reader is built. `read_directly` is for quick comparisons.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from everturn.sources.terminal.dialects import read_screens
from everturn.sources.terminal.transcript import DrawnCall, DrawnSaying
from everturn.sources.terminal.views import transcribe
from tests.recordings.truth import TIMING


@dataclass(frozen=True)
class Found:
    """What was read from one recording, in order."""

    prompts: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)  # text of the model, message by message
    calls: list[str] = field(default_factory=list)  # name, command, path and shown text of each call
    sessions: int = 0  # those with at least one prompt
    documents: int = 0  # all of them
    problem: str = ""  # why nothing was read


def read_recording(recording: Path) -> Found:
    """Archive a recording and read it back."""
    with tempfile.TemporaryDirectory(prefix="everturn-score-") as home:
        added = _run(home, "add", str(recording))
        if added.returncode:
            return Found(problem=(added.stderr or added.stdout).strip()[-300:])
        listed = json.loads(_run(home, "sessions", "--json", "--limit", "1000").stdout or '{"items": []}')["items"]
        exported = [_run(home, "export", str(one["id"]), "--as", "json", "--reveal").stdout for one in listed]
        return collect([json.loads(text) for text in exported if text])


def read_directly(recording: Path) -> Found:
    """Read a recording without an archive, in this process: the same items, in a tenth of the time."""
    timing = recording.with_name(TIMING)
    data = recording.read_bytes()
    talks = read_screens(transcribe(data, recording.name, timing.read_bytes() if timing.exists() else None))
    said = [item for talk in talks for item in talk.said]
    return Found(
        prompts=[item.text for item in said if _is_asked(item)],
        answers=[item.text for item in said if item.role == "assistant" and item.text],
        calls=[_describe(call) for item in said for call in item.calls],
        sessions=sum(any(map(_is_asked, talk.said)) for talk in talks),
        documents=len(talks),
    )


def _is_asked(item: DrawnSaying) -> bool:
    return item.role == "user" and item.kind != "interrupt"


def _describe(call: DrawnCall) -> str:
    shown = dict.fromkeys(filter(None, (call.title or call.name, call.command, call.pattern, call.prompt)))
    return " ".join([call.name, call.command, call.path, "\n".join(shown)])


def collect(documents: list[dict[str, Any]]) -> Found:
    """What is said and done in exported sessions; the sessions of one file are in the order of their numbers in it."""
    documents = sorted(documents, key=_place_in_file)
    messages = [message for document in documents for message in _messages(document)]
    blocks = [(message, block) for message in messages for block in message["blocks"]]
    return Found(
        prompts=[_text(message) for message in messages if _is_prompt(message)],
        answers=[block.get("text", "") for message, block in blocks if _is_answer(message, block)],
        calls=[_call(block) for _, block in blocks if block["kind"] == "call"],
        sessions=sum(any(map(_is_prompt, _messages(document))) for document in documents),
        documents=len(documents),
    )


def _place_in_file(document: dict[str, Any]) -> tuple[str, int]:
    path, _, number = document["source"]["path"].rpartition("#")
    return (path, int(number)) if path and number.isdigit() else (document["source"]["path"], 0)


def _messages(document: dict[str, Any]) -> list[dict[str, Any]]:
    def found() -> Iterator[dict[str, Any]]:
        for turn in document.get("turns", []):
            yield from turn.get("messages", [])
            for step in turn.get("steps", []):
                yield from step.get("messages", [])

    return sorted(found(), key=lambda message: int(message["number"]))


def _is_prompt(message: dict[str, Any]) -> bool:
    return bool(message["role"] == "user" and message["origin"] == "human")


def _is_answer(message: dict[str, Any], block: dict[str, Any]) -> bool:
    return bool(message["role"] == "assistant" and block["kind"] == "text")


def _text(message: dict[str, Any]) -> str:
    return "\n".join(block.get("text", "") for block in message["blocks"] if block["kind"] == "text")


def _call(block: dict[str, Any]) -> str:
    call = block.get("call") or {}
    words = [str(call.get(name) or "") for name in ("name", "command", "path")]
    return " ".join([*words, str(block.get("text", ""))])


def _run(home: str, *words: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).parents[2]
    env = {**os.environ, "HOME": home, "EVERTURN_HOME": f"{home}/everturn", "PYTHONPATH": str(root / "src")}
    command = [sys.executable, "-m", "everturn", *words]
    return subprocess.run(command, env=env, cwd=home, capture_output=True, text=True, check=False)
