"""A pytest plugin that puts our session into the place of the SDK's own and notes how the tests end that build one.

The SDK's other modules are imported before, so that they meet our class as they would meet any class of somebody else.
"""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import agents  # type: ignore[import-not-found, unused-ignore]
import pytest

from everturn.integrations.openai_agents import ArchiveSession

_built: set[str] = set()
_outcomes: dict[str, str] = {}
_running = [""]


class SQLiteSession(ArchiveSession):
    """Ours, made with the words of the other."""

    def __init__(
        self,
        session_id: str,
        db_path: str | Path = ":memory:",
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
        session_settings: Any = None,
    ) -> None:
        _built.add(_running[0])
        self.db_path, self.sessions_table, self.messages_table = db_path, sessions_table, messages_table
        super().__init__(session_id, "memory:" if str(db_path) == ":memory:" else db_path, session_settings)


for _name in ("encrypt_session", "advanced_sqlite_session", "async_sqlite_session", "sqlalchemy_session"):
    try:
        importlib.import_module(f"agents.extensions.memory.{_name}")
    except ImportError:
        pass
_modules: list[Any] = [agents, agents.memory, importlib.import_module("agents.memory.sqlite_session")]
for _module in _modules:
    _module.SQLiteSession = SQLiteSession


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Note which test is running."""
    _running[0] = item.nodeid


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how it ended: the worst of its phases."""
    if report.when == "call" or not report.passed:
        _outcomes[report.nodeid] = report.outcome if _outcomes.get(report.nodeid) != "failed" else "failed"


def pytest_sessionfinish() -> None:
    """Write down what was noted."""
    noted = {name: _outcomes.get(name, "not run") for name in _built}
    Path(os.environ["SESSION_SWAP"]).write_text(json.dumps(noted), "utf-8")
