"""The real programs, where they are installed, asking a scripted server: they answer, have no tools, and leave no session."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from everturn.llm.program_backend import ProgramBackend, ProgramLimits
from everturn.sources.contract import SearchPlaces, all_sources
from tests.llm.asking_models import asks
from tests.model_server import Asked, ModelServer
from tests.model_wires import Says

pytestmark = pytest.mark.slow


def answered(name: str, home: Path, server: ModelServer, env: dict[str, str], model: str) -> Any:
    """What a program answers, run in a home of its own."""
    source = all_sources()[name]
    assert source.ask is not None
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm", **env}
    reply = ProgramBackend("real", model, source.ask, env, ProgramLimits(seconds=120)).ask(asks("What is the answer?"))
    places = SearchPlaces(home, env, "linux")
    assert [found for root in source.roots(places) for found in source.find(root)] == []
    assert "What is the answer?" in server.asked[-1].text
    return reply


def tools(asked: Asked) -> list[str]:
    """The names of the tools that a program offered to its model."""
    found = [tool.get("function", tool) for tool in asked.body.get("tools", [])]
    declared = [one for tool in found for one in tool.get("functionDeclarations", [])]
    return [tool["name"] for tool in [*found, *declared] if "name" in tool]


def script(asked: Asked) -> Says:
    return Says("The answer is 42.", tokens=(100, 7))


@pytest.mark.needs("claude")
def test_claude_code_answers_as_a_model(tmp_path: Path) -> None:
    with ModelServer(script) as server:
        env = {"ANTHROPIC_BASE_URL": server.root, "ANTHROPIC_API_KEY": "sk-local", "CLAUDECODE": "1",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "IS_SANDBOX": "1"}  # fmt: skip
        reply = answered("claude_code", tmp_path, server, env, "some-model")
    assert (reply.text, reply.usage.input, reply.usage.output) == ("The answer is 42.", 100, 7)
    assert tools(server.asked[-1]) == []


@pytest.mark.needs("codex")
def test_codex_answers_as_a_model(tmp_path: Path) -> None:
    with ModelServer(script) as server:
        folder = tmp_path / ".codex"
        folder.mkdir()
        (folder / "config.toml").write_text(
            'model_provider = "local"\n[model_providers.local]\nname = "local"\nwire_api = "responses"\n'
            f'env_key = "LOCAL_KEY"\nbase_url = "{server.base}"\n'
        )
        reply = answered("codex", tmp_path, server, {"LOCAL_KEY": "k"}, "some-model")
    assert (reply.text, reply.usage.input, reply.usage.output) == ("The answer is 42.", 100, 7)
    assert not {"shell", "exec_command", "shell_command", "apply_patch", "web_search"} & set(tools(server.asked[-1]))


@pytest.mark.needs("opencode")
def test_opencode_answers_as_a_model(tmp_path: Path) -> None:
    with ModelServer(script) as server:
        folder = tmp_path / ".config" / "opencode"
        folder.mkdir(parents=True)
        options = {"baseURL": server.base, "apiKey": "k"}
        local = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"some-model": {}}}
        (folder / "opencode.json").write_text(json.dumps({"provider": {"local": local}}))
        reply = answered("opencode", tmp_path, server, {}, "local/some-model")
    assert (reply.text, reply.usage.input, reply.usage.output) == ("The answer is 42.", 100, 7)
    assert tools(server.asked[-1]) == []


@pytest.mark.needs("gemini")
def test_gemini_answers_as_a_model(tmp_path: Path) -> None:
    with ModelServer(script) as server:
        env = {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": server.root}
        reply = answered("gemini", tmp_path, server, env, "gemini-2.5-flash")
    assert (reply.text, reply.usage.input, reply.usage.output) == ("The answer is 42.", 100, 7)
    assert tools(server.asked[-1]) == []
