"""The real programs are asked for by name: EVERTURN_TEST_AGENTS is the folder they are installed in, or 1 (on the PATH)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from tests.agents.clients import PROGRAMS, WHERE, search_path
from tests.agents.held import Held, hold


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    why, here = _missing(), str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here) and item.get_closest_marker("agents"):
            item.add_marker(pytest.mark.slow)
            if why:
                item.add_marker(pytest.mark.skip(reason=why))


def _missing() -> str:
    if os.environ.get(WHERE, "0") in ("", "0"):
        return f"the real programs are not asked for: {WHERE} names the folder they are installed in, or is 1"
    lost = [program for program in PROGRAMS.values() if which(program, path=search_path()) is None]
    return f"not installed: {', '.join(lost)}" if lost else ""


class Conversations(dict[str, Held]):
    """The conversation as each of the programs has held it; made when it is first asked for."""

    def __init__(self, folders: pytest.TempPathFactory) -> None:
        super().__init__()
        self._folders = folders

    def __missing__(self, agent: str) -> Held:
        self[agent] = hold(agent, self._folders.mktemp(f"given-{agent}"))
        return self[agent]


@pytest.fixture(scope="session")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Conversations]:
    """See `Conversations`."""
    conversations = Conversations(tmp_path_factory)
    yield conversations
    for one in conversations.values():
        one.store.close()
