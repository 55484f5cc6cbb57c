"""Opt in with EVERTURN_TEST_NPM=1: the inspector and the official conformance suite, which come from npm.

    EVERTURN_TEST_NPM=1 pytest tests/mcp/test_from_npm.py

Needs npx and the network at the first run. The conformance suite needs Node 22, which npx brings along. Its scenarios
that ask for tools, resources and prompts of a made-up server (`test_…`) do not concern us; those for what we offer do.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.capture.history import SID
from tests.mcp.bridge import bridged
from tests.mcp.http_server import over_http
from tests.mcp.pipes import command, environment
from tests.recall.archives import Archive

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.environ.get("EVERTURN_TEST_NPM"), reason="opt in with EVERTURN_TEST_NPM=1"),
]

INSPECTOR = ("npx", "--yes", "-p", "@modelcontextprotocol/inspector@2", "mcp-inspector", "--cli")
CONFORMANCE = ("npx", "--yes", "-p", "node@22", "-p", "@modelcontextprotocol/conformance@0.1.16", "conformance")

#: What concerns any server with tools, resources and prompts.
OFFERED = [
    "server-initialize", "ping", "logging-set-level", "completion-complete", "tools-list", "resources-list",
    "prompts-list",
]  # fmt: skip
OVER_HTTP = [*OFFERED, "server-sse-multiple-streams", "dns-rebinding-protection"]


@pytest.fixture(autouse=True)
def taken_in(archive: Archive) -> None:
    archive.take_in(archive.history.turn("the zebra question", "an answer"))


def inspected(db: Path, *words: str) -> dict[str, Any]:
    """What the inspector prints."""
    run = subprocess.run(
        [*INSPECTOR, *command(db), *words], env=environment(), capture_output=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr.decode()
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def check(port: int, scenario: str) -> None:
    """Run one scenario of the suite."""
    words = ("server", "--url", f"http://127.0.0.1:{port}/mcp", "--scenario", scenario)
    run = subprocess.run([*CONFORMANCE, *words], capture_output=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout.decode()[-4000:] + run.stderr.decode()[-2000:]
    assert b" 0 failed" in run.stdout


def test_the_inspector_lists_and_calls_tools(db: Path) -> None:
    assert [tool["name"] for tool in inspected(db, "--method", "tools/list")["tools"]][1:] == [
        "list_sessions",
        "open_session",
    ]
    called = inspected(db, "--method", "tools/call", "--tool-name", "open_session", "--tool-arg", f"session={SID}")
    assert "the zebra question" in called["content"][0]["text"]


def test_the_inspector_lists_resources_and_prompts(db: Path) -> None:
    assert inspected(db, "--method", "resources/list")["resources"][0]["uri"].endswith(SID)
    assert len(inspected(db, "--method", "prompts/list")["prompts"]) == 2


@pytest.mark.parametrize("scenario", OFFERED)
def test_our_own_server_passes_the_conformance_suite(db: Path, scenario: str) -> None:
    with bridged(db) as port:
        check(port, scenario)


@pytest.mark.parametrize("scenario", OVER_HTTP)
def test_the_server_over_http_passes_the_conformance_suite(db: Path, scenario: str) -> None:
    with over_http(db) as (_, port):
        check(port, scenario)
