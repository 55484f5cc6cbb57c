"""A server for each test, and nothing where its packages are not installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.needs import is_installed

if TYPE_CHECKING:
    from tests.web.server import Served

if not is_installed("module:starlette") or not is_installed("module:uvicorn"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Served]:
    from tests.web.server import served

    with served(tmp_path) as made:
        yield made


@pytest.fixture
def full(web: Served) -> Served:
    """The same with a session in it."""
    from tests.web.server import fill

    fill(web)
    return web
