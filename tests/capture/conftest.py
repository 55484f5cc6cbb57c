"""A history and an archive for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.store.contract import Store, open_store
from tests.capture.history import History


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "agent")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "archive" / "archive.db"))
    yield opened
    opened.close()


@pytest.fixture(params=["sqlite", "postgres"])
def any_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """The same test on both engines."""
    wanted = str(tmp_path / "archive.db") if request.param == "sqlite" else request.getfixturevalue("postgres_archive")
    opened = open_store(wanted)
    yield opened
    opened.close()
