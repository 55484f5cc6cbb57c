"""An archive in a file for each test of the server, and a server on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.mcp.archive import McpArchive as Served
from everturn.mcp.server import McpServer
from everturn.store.contract import open_store
from tests.mcp.pipes import Pipes
from tests.recall.archives import Archive

NOW = 1_772_400_000_000  # a day after the transcripts of `tests.capture.history`


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "archive.db"


@pytest.fixture
def archive(db: Path, tmp_path: Path) -> Iterator[Archive]:
    made = Archive(open_store(str(db)), tmp_path / "agent")
    yield made
    made.store.close()


@pytest.fixture
def offers(db: Path) -> Iterator[McpServer]:
    """What the server offers, without a server."""
    made = McpServer(Served(str(db), clock=lambda: NOW))
    yield made
    made.close()


@pytest.fixture
def pipes(db: Path) -> Iterator[Pipes]:
    with Pipes(db) as made:
        yield made
