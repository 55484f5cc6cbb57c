"""Requests of the providers' own SDKs: sessions against a strict server, judged by the validator and sent on other wires."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.figures import Figure, exact, show
from everturn.llm.history_repair import repair_history
from everturn.llm.history_rules import certain_violations, validate_request
from tests.llm.histories import messages_of, sent
from tests.model_rules import broken_rule
from tests.model_server import Asked, Call, ModelServer, Says

REQUESTS = 200
_PROGRAM = Path(__file__).with_name("wires_sdk.py")
_NAMES = {"messages": "anthropic_messages", "chat": "chat_completions", "responses": "responses"}
_ATTACHED = re.compile(r"QVRUQUNI[A-Za-z0-9+/]{8}")  # what the program attaches, encoded


def main() -> int:
    """Install the SDKs into a folder of their own, or use those of the Python given, and show the figures."""
    given = [word for word in sys.argv[1:] if not word.startswith("--")]
    with tempfile.TemporaryDirectory(prefix="everturn-sdk-") as folder:
        try:
            python = given[0] if given else _installed(folder)
        except (OSError, subprocess.CalledProcessError) as failure:
            show(Figure("requests of the SDKs", None, note=f"cannot be installed: {failure}"), "--json" in sys.argv)
            return 0
        for wire in _NAMES:
            for figure in _judged(python, wire):
                show(figure, "--json" in sys.argv)
    return 0


def _installed(folder: str) -> str:
    python = str(Path(folder) / ("Scripts" if sys.platform == "win32" else "bin") / "python")
    venv.create(folder, with_pip=True)
    words = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "anthropic", "openai"]
    subprocess.run(words, check=True, capture_output=True)
    return python


def _judged(python: str, wire: str) -> Iterator[Figure]:
    with ModelServer(_answer, strict=True) as server:
        words = [python, str(_PROGRAM), server.root, wire, str(REQUESTS)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        asked = server.asked
    failed = [] if done.returncode == 0 else [(done.stderr.strip().splitlines() or ["it failed"])[-1][:200]]
    refused = [found for one in asked for found in _refusals(wire, one.body)]
    yield exact(f"{wire}: requests of the SDK that are refused", failed + refused, f"{len(asked)} requests")
    wrong, crossed = [], 0
    for one in asked:
        for other in _NAMES.values():
            crossed += len(set(_ATTACHED.findall(one.text)))
            wrong += _crossed(_NAMES[wire], other, one)
    yield exact(f"{wire}: sent on every wire, refused or without a file", wrong, f"{crossed} files and images")


def _refusals(wire: str, body: dict[str, Any]) -> list[str]:
    rule = broken_rule(wire, body)
    return [one.sentence for one in validate_request(_NAMES[wire], body)] + ([rule] if rule else [])


def _crossed(wire: str, other: str, asked: Asked) -> list[str]:
    body = sent(other, repair_history(messages_of(wire, asked.body), wire=other).messages)
    lost = set(_ATTACHED.findall(asked.text)) - set(_ATTACHED.findall(json.dumps(body)))
    broken = [f"request {asked.number} on {other}: {one.sentence}" for one in certain_violations(other, body)]
    return broken + [f"request {asked.number} on {other}: {len(lost)} files are lost"] * bool(lost)


def _answer(asked: Asked) -> Says | dict[str, Any]:
    dice = random.Random(asked.number)
    kind = dice.choice(["text", "calls", "calls", "thinking", "refusal", "server"])
    calls = tuple(Call("read", {"path": f"{n}.py"}) for n in range(dice.randint(1, 3)))
    if kind == "server" and asked.wire in _SERVER_TOOLS:
        return _SERVER_TOOLS[asked.wire](asked.number)
    if kind == "refusal":
        return Says("I cannot help with that.", stop="refusal")
    # With thinking switched on, an answer begins with a thought; switched off, it has none.
    thinks = asked.body["thinking"]["type"] == "enabled" if asked.wire == "messages" else kind == "thinking"
    thought = "Let me see." if thinks else ""
    if kind in ("text", "server"):
        return Says(f"Answer {asked.number}.", thinking=thought)
    return Says("I look." if dice.random() < 0.5 else "", calls, thinking=thought)


def _searched(number: int) -> dict[str, Any]:
    call = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search", "input": {"query": "x"}}
    page = {
        "type": "web_search_result",
        "url": "https://example.org",
        "title": "x",
        "encrypted_content": "e",
        "page_age": None,
    }
    found = {"type": "web_search_tool_result", "tool_use_id": call["id"], "content": [page]}
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [call, found, {"type": "text", "text": "Found."}], "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def _searched_items(number: int) -> dict[str, Any]:
    action = {"type": "search", "query": "x"}
    call = {"type": "web_search_call", "id": f"ws_{number}", "status": "completed", "action": action}
    text = {"type": "output_text", "text": "Found.", "annotations": []}
    said = {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": f"resp_{number}", "object": "response", "created_at": 0, "status": "completed", "model": "m",
        "output": [call, said], "parallel_tool_calls": True, "tool_choice": "auto", "tools": [],
    }  # fmt: skip


_SERVER_TOOLS = {"messages": _searched, "responses": _searched_items}

if __name__ == "__main__":
    sys.exit(main())
