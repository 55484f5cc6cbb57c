"""An archive in memory with a small session in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.model.archive import Session
from everturn.store.contract import Store, open_store
from tests.recall.archives import Archive
from tests.restore.shop import shop


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store("memory:")
    yield opened
    opened.close()


@pytest.fixture
def session(store: Store, tmp_path: Path) -> Session:
    return shop(store, tmp_path / "agent")


@pytest.fixture
def archive(store: Store, tmp_path: Path) -> Archive:
    return Archive(store, tmp_path / "agent")
