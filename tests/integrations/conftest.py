"""An archive on every engine, and the event loop for asynchronous faces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from everturn.integrations.archive import Archive
from tests.quick import some

ENGINES = ["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.needs("module:psycopg"))]


@pytest.fixture(params=some(ENGINES, 2))
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Archive]:
    """A fresh archive."""
    if request.param == "postgres":
        url = str(request.getfixturevalue("postgres_archive"))
    else:
        url = "memory:" if request.param == "memory" else str(tmp_path / "archive.db")
    with Archive(url) as opened:
        yield opened
