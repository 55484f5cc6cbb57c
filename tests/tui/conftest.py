"""An archive of its own for each test of the screens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.needs import is_installed

if TYPE_CHECKING:
    from tests.tui.screens import Desk

if not is_installed("module:textual"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    from tests.tui.screens import Desk

    made = Desk(tmp_path)
    yield made
    made.taken.store.close()
