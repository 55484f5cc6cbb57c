"""Every test of the contract runs on every engine: one URL each, one fresh archive each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.store.contract import Store, open_store
from tests.quick import some

ENGINES = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.needs("module:psycopg"))]


@pytest.fixture(params=some(ENGINES, 2))
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an archive can be made, or an empty one is."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_archive"))
    return "memory:" if request.param == "memory" else str(tmp_path / "archive.db")


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """A fresh archive."""
    opened = open_store(store_url)
    yield opened
    opened.close()
