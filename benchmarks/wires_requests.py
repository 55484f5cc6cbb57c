"""Requests of SDKs and agent frameworks: sessions against a strict server, judged by the validator and sent on other wires.

`python -m benchmarks.wires_requests [PYTHON]`: with the Python of an environment that has all of them nothing is installed.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.durable.peer import PeerPython, Unobtainable
from benchmarks.figures import Figure, exact, show
from everturn.llm.history_repair import repair_history
from everturn.llm.history_rules import certain_violations
from tests.llm.histories import messages_of, sent
from tests.model_rules import broken_rule
from tests.model_server import Asked, Call, ModelServer, Says

REQUESTS, OF_FRAMEWORK = 200, 60
HERE = Path(__file__).parent
_NAMES = {"messages": "anthropic_messages", "chat": "chat_completions", "responses": "responses"}
_ATTACHED = re.compile(r"QVRUQUNI[A-Za-z0-9+/]{8}")  # what the programs attach, encoded
_SDKS = ("anthropic", "openai")
#: What sends requests in its own words: its packages, and the wires it knows.
FRAMEWORKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "langgraph": (("langgraph", "langchain", "langchain-openai", "langchain-anthropic"), tuple(_NAMES)),
    "pydantic_ai": (("pydantic-ai-slim[openai,anthropic]",), tuple(_NAMES)),
    "openai_agents": (("openai-agents",), ("chat", "responses")),
    "claude_agent_sdk": (("claude-agent-sdk",), ("messages",)),
}


def main() -> int:
    """Install everything into a folder of its own, or use what the Python given has, and show the figures."""
    given = [word for word in sys.argv[1:] if not word.startswith("--")]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="everturn-sdk-") as folder:
        for figure in _figures(Path(given[0]) if given else None, Path(folder)):
            show(figure, "--json" in sys.argv)
            missed += figure.verdict == "FAIL"
    return 1 if missed else 0


def _figures(given: Path | None, folder: Path) -> Iterator[Figure]:
    try:
        made = PeerPython(folder / "python") if given is None else None
        if made is not None:
            made.install(*_SDKS)
    except Unobtainable as failure:
        yield Figure("requests of the SDKs", None, note=str(failure))
        return
    python = given or (made and made.path)
    for wire in _NAMES:
        yield from judged(f"{wire}: SDK", wire, [str(python), str(HERE / "wires_sdk.py")], [wire, str(REQUESTS)])
    for framework, (packages, wires) in FRAMEWORKS.items():
        try:
            if made is not None:
                made.install(*packages)
        except Unobtainable as failure:
            yield Figure(f"requests of {framework}", None, note=str(failure))
            continue
        for wire in wires:
            words = [str(python), str(HERE / "wires_frameworks.py")]
            yield from judged(f"{wire}: {framework}", wire, words, [framework, wire, str(OF_FRAMEWORK)])


def judged(name: str, wire: str, program: list[str], rest: list[str]) -> Iterator[Figure]:
    """Run a program against a strict server; judge its requests, and send each on every wire."""
    with ModelServer(_answer, strict=True) as server, tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "HOME": home}
        words = [*program, server.root, *rest]
        done = subprocess.run(words, cwd=home, env=env, capture_output=True, text=True, check=False)
        asked = [one for one in server.asked if one.wire == wire]
    failed = [] if done.returncode == 0 else [(done.stderr.strip().splitlines() or ["it failed"])[-1][:200]]
    refused = [found for one in asked for found in _refusals(wire, one.body)]
    streamed = sum(one.is_streamed for one in asked)
    note = f"{len(asked)} requests, {streamed} streamed"
    yield exact(f"{name}: requests that are refused", failed + refused, note)
    wrong, crossed = [], 0
    for one in asked:
        for other in _NAMES.values():
            crossed += len(set(_ATTACHED.findall(one.text)))
            wrong += _crossed(_NAMES[wire], other, one)
    note = f"{crossed} files and images; {done.stdout.strip()[:200]}"
    yield exact(f"{name}: on every wire, refused or without a file", wrong, note)


def _refusals(wire: str, body: dict[str, Any]) -> list[str]:
    rule = broken_rule(wire, body)
    return [one.sentence for one in certain_violations(_NAMES[wire], body)] + ([rule] if rule else [])


def _crossed(wire: str, other: str, asked: Asked) -> list[str]:
    body = sent(other, repair_history(messages_of(wire, asked.body), wire=other).messages)
    lost = set(_ATTACHED.findall(asked.text)) - set(_ATTACHED.findall(json.dumps(body)))
    broken = [f"request {asked.number} on {other}: {one.sentence}" for one in certain_violations(other, body)]
    return broken + [f"request {asked.number} on {other}: {len(lost)} files are lost"] * bool(lost)


def _answer(asked: Asked) -> Says | dict[str, Any]:
    dice = random.Random(asked.number)
    kind = dice.choice(["text", "calls", "calls", "thinking", "refusal", "server"])
    reader = next((name for name in _offered(asked.body) if name.endswith("read")), "")
    if kind == "server" and asked.wire in _SERVER_TOOLS and "web_search" in asked.text and not asked.is_streamed:
        return _SERVER_TOOLS[asked.wire](asked.number)
    if kind == "refusal":
        return Says("I cannot help with that.", stop="refusal")
    # With thinking switched on, an answer begins with a thought; switched off, it has none.
    thinks = kind == "thinking"
    if asked.wire == "messages":
        thinks = asked.body.get("thinking", {}).get("type") in ("enabled", "adaptive")
    thought = "Let me see." if thinks else ""
    if kind in ("text", "server") or not reader:
        return Says(f"Answer {asked.number}.", thinking=thought)
    calls = tuple(Call(reader, {"path": f"{n}.py"}) for n in range(dice.randint(1, 3)))
    return Says("I look." if dice.random() < 0.5 else "", calls, thinking=thought)


def _offered(body: dict[str, Any]) -> list[str]:
    return [one.get("function", one).get("name", "") for one in body.get("tools") or ()]


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
