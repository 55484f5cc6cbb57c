"""Archives a journal can be written to: SQLite in a file and in memory, and PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.loop.journal import open_archive
from everturn.store.contract import Store, open_store
from tests.quick import some
from tests.recall.archives import Archive


@pytest.fixture(params=some(["file", "memory", "postgres"], 2))
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an archive that is empty or does not exist yet."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_archive"))
    return "memory:" if request.param == "memory" else str(tmp_path / "archive.db")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A connection to each kind of archive."""
    store = open_archive(url)
    yield store
    store.close()


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Store]:
    """A connection to an archive in a file."""
    store = open_archive(str(tmp_path / "archive.db"))
    yield store
    store.close()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Archive]:
    """An archive in memory, and the agent whose sessions it takes in."""
    store = open_store("memory:")
    yield Archive(store, tmp_path / "agent")
    store.close()
