"""An archive of an earlier version is brought up to date, and that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.cli import main
from everturn.store import sql_store
from everturn.store.sqlite import open_sqlite


def test_bringing_an_archive_up_to_date_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EVERTURN_HOME", str(tmp_path))
    archive = tmp_path / "archive.db"
    steps = sql_store.known_migrations("sqlite")
    with monkeypatch.context() as earlier:
        earlier.setattr(sql_store, "known_migrations", lambda engine: steps[:-1])
        open_sqlite(str(archive)).close()
    for told in (True, False):
        main(["sessions", "--db", str(archive)])
        assert ("bringing the archive to this version's schema" in capsys.readouterr().err) is told
