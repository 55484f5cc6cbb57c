"""An archive for each test: in memory, and in a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.store.contract import Store, open_store
from tests.quick import some
from tests.recall.archives import Archive


@pytest.fixture(params=some(["memory", "file"], 1))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = open_store("memory:" if request.param == "memory" else str(tmp_path / "archive.db"))
    yield opened
    opened.close()


@pytest.fixture
def archive(store: Store, tmp_path: Path) -> Archive:
    return Archive(store, tmp_path / "agent")
