"""`@pytest.mark.needs("strace")`: a test that runs only where a tool is installed, and says so where it is not.

A tool is a program on the PATH, or a Python module when written `module:psycopg`. With EVERTURN_REQUIRE_TOOLS=1 (set by
`.ci/run`) a test that is skipped although its tool is there counts as failed: a gate must not go green by looking away.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from importlib.util import find_spec
from shutil import which

import pytest

#: Programs a reason for skipping may name without the test having declared them.
TOOLS = ("strace", "tmux", "chromium")

#: Read once, before the tests' own home and environment are set up.
REQUIRED = bool(os.environ.get("EVERTURN_REQUIRE_TOOLS"))


def is_installed(tool: str) -> bool:
    """Whether a program or a module can be used here."""
    kind, _, name = tool.rpartition(":")
    return find_spec(name) is not None if kind == "module" else which(name) is not None


def tools_of(item: pytest.Item) -> list[str]:
    """The tools a test declares."""
    return [tool for mark in item.iter_markers("needs") for tool in mark.args]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    missing = [tool for tool in tools_of(item) if not is_installed(tool)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}, which is not installed")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and REQUIRED and not hasattr(report, "wasxfail"):
        _refuse_to_skip(item, report)
    return report


def _refuse_to_skip(item: pytest.Item, report: pytest.TestReport) -> None:
    why = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    named = [tool for tool in TOOLS if tool in why.lower()]
    tools = tools_of(item) or named
    if tools and all(map(is_installed, tools)) and not item.get_closest_marker("agents"):  # those are asked for by name
        report.outcome = "failed"
        report.longrepr = f"{', '.join(tools)} is installed, yet the test was skipped: {why}"
