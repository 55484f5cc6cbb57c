"""A planted repository in an archive, and the command line in front of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from everturn.cli import main
from everturn.store.contract import Store, open_store
from tests.planted_repository import PlantedRepository

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def story(tmp_path: Path) -> PlantedRepository:
    return PlantedRepository(tmp_path / "place")


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command of everturn: exit code, stdout, stderr."""
    monkeypatch.setenv("HOME", str(tmp_path / "place" / "home"))
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path / "everturn"))
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([*words, "--db", str(tmp_path / "archive.db")])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(str(tmp_path / "archive.db"))
    yield opened
    opened.close()
