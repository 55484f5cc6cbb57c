"""An archive of its own for each test of the reading commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path))
    made = Desk(tmp_path, capsys)
    yield made
    made.archive.store.close()
