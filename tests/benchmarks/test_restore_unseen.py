"""The set that nobody learns from: places without words, repositories of its own, and a scorer that lists no misses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.restore.ends import ASIDE
from benchmarks.restore.labels import LABELS, NAMED, OPENED_HALF, SETS, SPOKEN, UNSEEN_HALF, WHOLE_HALF, mark
from benchmarks.restore.learn import SENTENCES, TURNS, UNITS
from benchmarks.restore.pair import main as pair_main
from benchmarks.restore.pair import pair_items
from benchmarks.restore.unseen import main, unseen_figures, unseen_misses
from tests.capture.history import SID, History

RULE = "Never push to main without asking me first."
TASK = f"Please give the shop a cart. {RULE}"
ANSWER = "I added the cart. Next step: write the tests."


def place(seq: int, text: str, quote: str) -> list[object]:
    return [seq, text.index(quote), len(quote), mark(quote)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of one session, and its entry beside it."""
    history = History(tmp_path / "agent")
    history.write(history.turn(TASK, ANSWER))
    found = tmp_path / "sessions" / "claude-code"
    found.mkdir(parents=True)
    history.file().rename(found / f"{SID}.jsonl")
    sections: dict[str, list[object]] = {key: [] for key in (*SPOKEN, *NAMED)}
    sections["constraints"] = [{"readers": "AB", "places": [place(0, TASK, RULE)]}]
    sections["next_steps"] = [
        {"readers": "AB", "places": [place(1, ANSWER, "write the tests")]},
        {"readers": "AB?", "places": [place(1, ANSWER, "I added the cart")]},  # both were unsure: nobody misses it
    ]
    goal = {"places": [place(0, TASK, "give the shop a cart")], "evolved": []}
    entry = {"id": SID, "file": f"claude-code/{SID}.jsonl", "half": UNSEEN_HALF, "goal": goal, "sections": sections}
    absent = entry | {"file": "claude-code/absent.jsonl"}
    (tmp_path / "unseen.json").write_text(json.dumps([entry, absent]))
    return tmp_path


def test_documents_of_unseen_sessions_are_held_against_the_lists(folder: Path) -> None:
    found = list(unseen_figures(folder / "sessions", folder / "archive", folder / "unseen.json"))
    values = {one.name: one.value for one in found}
    bars = {one.name: one.bar for one in found}
    assert values["labels whose words are no longer found"] == 0
    assert values["unseen: goal, right"] == 1
    for name in ("constraints, precision", "constraints, recall", "open questions and next steps, recall"):
        assert values[f"unseen: {name}"] == 1 and bars[f"unseen: {name}"], name
    assert values["unseen: files, recall"] is None  # nothing was listed


def test_misses_are_refused_until_the_set_is_opened(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(folder / "sessions"), "--misses", "decisions"])
    assert "only measured" in capsys.readouterr().err
    lines = list(unseen_misses(folder / "sessions", folder / "archive", "goal", folder / "unseen.json"))
    assert lines == []


def test_the_last_sessions_of_a_set_are_measured_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path), "--set", OPENED_HALF, "--last", "29"])
    assert "29 sessions are not in the folder" in capsys.readouterr().err


@pytest.mark.parametrize(("half", "count"), [(UNSEEN_HALF, 13), (OPENED_HALF, 87), (WHOLE_HALF, 72)])
def test_entries_hold_places_and_no_words(half: str, count: int) -> None:
    text = SETS[half].read_text("utf-8")
    entries = json.loads(text)
    assert len(entries) == count == text.count("\n") - 2
    for one in entries:
        assert set(one) == {"id", "file", "half", "from", "goal", "sections"} and one["half"] == half
        assert re.fullmatch(r"[^/@]+/[^/@]+@[0-9a-f]{40}:.+", one["from"])
        assert set(one["sections"]) == {*SPOKEN, *NAMED} and one["goal"]["places"], one["id"]
        items = [entry for found in one["sections"].values() for entry in found]
        assert all(set(entry) <= {"readers", "places", "commands"} and entry["places"] for entry in items)
        assert all(entry["readers"] in ("A", "B", "AB", "AB?", "N") for entry in items)
        places = [place for entry in items for place in (*entry["places"], *entry.get("commands", []))]
        for seq, start, size, hashed in (*places, *one["goal"]["places"], *one["goal"]["evolved"]):
            assert seq >= 0 and start >= 0 and size > 0 and re.fullmatch("[0-9a-f]{8}", hashed)


def repositories(path: Path) -> set[str]:
    return {one["file"].split("/")[1].lower() for one in json.loads(path.read_text("utf-8"))}


@pytest.mark.parametrize(("half", "count"), [(UNSEEN_HALF, 9), (OPENED_HALF, 72)])
def test_no_other_set_holds_a_repository_of_one_that_nothing_was_learnt_from(half: str, count: int) -> None:
    others = [path for path in (ASIDE, SENTENCES, UNITS, TURNS, LABELS, *SETS.values()) if path != SETS[half]]
    own = repositories(SETS[half])
    assert len(own) == count and not own & set[str]().union(*map(repositories, others))


# --- labels of two lists ---
def listed(*quotes: str, seq: int = 1, sure: bool = True) -> list[dict[str, object]]:
    return [{"seq": seq, "quote": one, "sure": sure} for one in quotes]


def test_points_of_two_readers_are_paired_once_the_likest_first() -> None:
    first = listed("write the tests of the cart", "write the tests")
    second = listed("write the tests", "paint the harbour wall")
    found = [(one and one["quote"], other and other["quote"]) for one, other in pair_items(first, second)]
    assert found == [
        ("write the tests", "write the tests"),
        ("write the tests of the cart", None),
        (None, "paint the harbour wall"),
    ]
    far = [*listed("write the tests", seq=1)], [*listed("now paint the tests of the wall green", seq=9)]
    assert all(None in pair for pair in pair_items(*far))


def test_lists_of_two_readers_become_labels(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sheet = tmp_path / "sheets" / "01"
    sheet.mkdir(parents=True)
    meta = {"id": SID, "file": f"claude-code/{SID}.jsonl", "from": "a/b@c:d"}
    (sheet / "meta.json").write_text(json.dumps(meta))
    nothing: dict[str, list[object]] = {name: [] for name in ("decisions", "failing", "files", "commits", "phrases")}
    both = {"goal": "a cart", "goal_seqs": [0], **nothing, "constraints": listed(RULE, seq=0)}
    lists = {
        "A": {**both, "open": listed("write  the tests"), "phrases": ["cart"]},
        "B": {**both, "open": listed("Next step: write the tests", sure=False) + listed("not in the session")},
    }
    for reader, given in lists.items():
        (tmp_path / reader).mkdir()
        (tmp_path / reader / "01.json").write_text(json.dumps(given))
    assert pair_main([str(folder / "sessions"), str(tmp_path / "sheets"), str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "1 sessions; 1 quotes are not in theirs" in printed.err
    (made,) = json.loads(printed.out)
    sections = made["sections"]
    assert made["half"] == UNSEEN_HALF and made["goal"]["places"] == [place(0, TASK, TASK)]
    assert sections["constraints"] == [{"readers": "AB", "places": [place(0, TASK, RULE)] * 2}]
    assert sections["next_steps"] == [
        {"readers": "AB", "places": [place(1, ANSWER, "write the tests"), place(1, ANSWER, ANSWER[18:-1])]}
    ]
    assert [one["readers"] for one in sections["key_phrases"]] == ["A"]
