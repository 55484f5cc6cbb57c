"""`everturn export --analytics`: the numbers of all sessions in a folder, and nothing that was said."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.model.analytics import PLANE
from tests.capture.history import SID
from tests.cli.desk import KEY, Desk


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["csv", pytest.param("parquet", marks=pytest.mark.needs("module:duckdb"))])
def test_every_table_is_a_file_without_a_word_of_content(desk: Desk, tmp_path: Path, form: str) -> None:
    desk.take_in(desk.archive.history.tool_turn(f"prompt {KEY}", f"cat {KEY}", f"output {KEY}"))
    folder = tmp_path / "numbers"
    code, out, err = desk.run("export", "--analytics", "--as", form, "--out", str(folder))
    assert (code, out) == (0, "") and err.startswith(f"wrote {len(PLANE)} tables, ")
    assert {file.name for file in folder.iterdir()} == {f"{table.name}.{form}" for table in PLANE}
    assert not any(KEY.encode() in file.read_bytes() for file in folder.iterdir())
    assert SID.encode() in (folder / f"invocations.{form}").read_bytes()
    assert desk.run("export", "--analytics", "--as", form, "--out", str(folder))[0] == 2
    assert desk.run("export", "--analytics", "--as", form, "--out", str(folder), "--force")[0] == 0


def test_where_one_table_is_in_the_way_none_is_written(desk: Desk, tmp_path: Path) -> None:
    desk.take_in(desk.archive.history.turn("ask", "reply"))
    (tmp_path / "turns.csv").write_text("mine")
    before = set(tmp_path.iterdir())
    code, _, err = desk.run("export", "--analytics", "--as", "csv", "--out", str(tmp_path))
    assert code == 2 and "turns.csv already exists" in err
    assert set(tmp_path.iterdir()) == before and (tmp_path / "turns.csv").read_text() == "mine"


def test_a_file_in_place_of_the_folder_is_told(desk: Desk, tmp_path: Path) -> None:
    desk.take_in(desk.archive.history.turn("ask", "reply"))
    (tmp_path / "numbers").write_text("mine")
    code, _, err = desk.run("export", "--analytics", "--as", "csv", "--out", str(tmp_path / "numbers"))
    assert code == 2 and "is a file; the tables are written into a folder" in err


def test_without_duckdb_no_folder_is_made(desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.take_in(desk.archive.history.turn("ask", "reply"))
    monkeypatch.setattr("everturn.export.analytics_tables.find_spec", lambda name: None)
    code, _, err = desk.run("export", "--analytics", "--as", "parquet", "--out", str(tmp_path / "numbers"))
    assert code == 1 and "pip install 'everturn[parquet]'" in err and not (tmp_path / "numbers").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--analytics", "--as", "csv"),
        ("--analytics", "--as", "json", "--out", "folder"),
        (SID, "--as", "csv", "--out", "folder"),
        ("--as", "json"),
    ],
)
def test_what_cannot_be_meant_is_refused(desk: Desk, words: tuple[str, ...]) -> None:
    desk.take_in(desk.archive.history.turn("ask", "reply"))
    code, out, err = desk.run("export", *words)
    assert (code, out) == (2, "") and "everturn" in err
