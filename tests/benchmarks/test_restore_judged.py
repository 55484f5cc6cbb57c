"""Verdicts of readers: sheets are written, verdicts taken as hashes and places, and an entry whose words changed is not judged."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.restore import judged
from benchmarks.restore.judged import FOUND, SHEET, VERDICTS, main, sheet_name
from tests.capture.history import SID, History

RULE = "Never push to main without asking me first."
TASK = f"Please give the shop a cart. {RULE}"
ANSWER = "I added the cart. Next step: write the tests."
FILE = f"claude-code/{SID}.jsonl"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of one session that is to be judged."""
    history = History(tmp_path / "agent")
    history.write(history.turn(TASK, ANSWER))
    found = tmp_path / "sessions" / "claude-code"
    found.mkdir(parents=True)
    history.file().rename(found / f"{SID}.jsonl")
    path = tmp_path / "judged.json"
    path.write_text(json.dumps([{"set": "unseen", "file": FILE, "id": SID, "from": "one/shop@0:a"}]))
    monkeypatch.setattr(judged, "JUDGED", path)
    return tmp_path


def figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, float | None]:
    capsys.readouterr()
    main([str(folder / "sessions"), "--json"])
    found = map(json.loads, capsys.readouterr().out.splitlines())
    return {one["name"].removeprefix("unseen, judged: "): one["value"] for one in found}


def judge_all(folder: Path, verdict: str) -> dict[str, list[str]]:
    """Give every entry of the sheet a verdict, and list two rules of which one is found."""
    sheet = folder / "sheets" / sheet_name({"file": FILE, "id": SID})
    assert RULE in (sheet / "transcript.txt").read_text() and RULE in (sheet / "document.md").read_text()
    shown: dict[str, list[str]] = json.loads((sheet / "entries.json").read_text())
    points = [
        {"seq": 0, "quote": RULE, "found": "section"},
        {"seq": 0, "quote": "give the shop a cart", "found": "elsewhere"},
    ]
    verdicts = {"entries": {name: [verdict] * len(shown[name]) for name in SHEET}, "points": {"constraints": points}}
    (sheet / "verdicts.json").write_text(json.dumps(verdicts))
    return shown


def test_verdicts_are_taken_as_hashes_and_give_the_figures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder / "sessions"), "--sheets", str(folder / "sheets")]) == 0
    shown = judge_all(folder, "right")
    assert shown["constraints"] == [RULE] and any("write the tests" in one for one in shown["open"])
    assert main([str(folder / "sessions"), "--take", str(folder / "sheets")]) == 0
    held = judged.JUDGED.read_text()
    assert "push" not in held and "cart" not in held
    found = figures(folder, capsys)
    assert found["constraints, right"] == 1 and found["constraints, found"] == 0.5
    assert found["decisions, found"] is None  # nothing was listed


def test_an_entry_whose_words_changed_is_not_judged(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main([str(folder / "sessions"), "--sheets", str(folder / "sheets")])
    judge_all(folder, "wrong")
    main([str(folder / "sessions"), "--take", str(folder / "sheets")])
    assert figures(folder, capsys)["constraints, right"] == 0
    entries = json.loads(judged.JUDGED.read_text())
    entries[0]["entries"]["constraints"] = {"00000000": "right"}
    judged.JUDGED.write_text(json.dumps(entries))
    found = figures(folder, capsys)
    assert found["constraints, right"] is None and found["constraints, found"] is None


def test_a_verdict_for_each_entry_is_asked_for(folder: Path) -> None:
    main([str(folder / "sessions"), "--sheets", str(folder / "sheets")])
    judge_all(folder, "right")
    sheet = folder / "sheets" / sheet_name({"file": FILE, "id": SID}) / "verdicts.json"
    verdicts = json.loads(sheet.read_text())
    verdicts["entries"]["constraints"] = []
    sheet.write_text(json.dumps(verdicts))
    with pytest.raises(SystemExit):
        main([str(folder / "sessions"), "--take", str(folder / "sheets")])


def test_the_file_holds_hashes_and_places_and_no_words() -> None:
    for one in json.loads(judged.JUDGED.read_text("utf-8")):
        assert set(one) <= {"set", "file", "id", "from", "entries", "points"}
        assert re.fullmatch(r"[^/@]+/[^/@]+@[0-9a-f]{40}:.+", one["from"])
        for verdicts in one.get("entries", {}).values():
            assert all(re.fullmatch("[0-9a-f]{8}", key) and value in VERDICTS for key, value in verdicts.items())
        for seq, start, size, hashed, found in [place for points in one.get("points", {}).values() for place in points]:
            assert seq >= 0 and start >= 0 and size >= 0 and re.fullmatch("(?:[0-9a-f]{8})?", hashed)
            assert found in FOUND
