"""Requests of the frameworks themselves: none is refused by our rules, and files and images cross every wire."""

from __future__ import annotations

import sys

import pytest

from benchmarks.wires_requests import FRAMEWORKS, HERE, judged

NEEDS = {
    "langgraph": ("langchain", "langchain_openai", "langchain_anthropic"),
    "pydantic_ai": ("pydantic_ai", "openai", "anthropic"),
    "openai_agents": ("agents",),
    "claude_agent_sdk": ("claude_agent_sdk",),
}
CASES = [
    pytest.param(framework, wire, marks=pytest.mark.needs(*(f"module:{one}" for one in NEEDS[framework])), id=f"{framework}-{wire}")
    for framework, (_, wires) in FRAMEWORKS.items()
    for wire in wires
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("framework", "wire"), CASES)
def test_no_request_of_a_framework_is_refused_on_any_wire(framework: str, wire: str) -> None:
    program = [sys.executable, str(HERE / "wires_frameworks.py")]
    for figure in judged(framework, wire, program, [framework, wire, "8"]):
        assert figure.verdict == "pass", figure.note
        assert not figure.note.startswith("0 "), figure.name  # requests, and files, there were
