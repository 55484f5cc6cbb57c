"""Forgotten words are nowhere: 60 places, each with a word of its own, also when `forget` is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import erasure
from tests.canaries.places import CHILD_QUESTION, TARGETS, places_held, plant_home


def test_a_forgotten_session_is_in_none_of_its_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from everturn.cli import main

    home = tmp_path / "home"
    word = plant_home(home)
    assert places_held(home, word) == set(word.words) and len(word.words) >= erasure.PLACES
    monkeypatch.setenv("EVERTURN_HOME", str(home))
    assert [main(["forget", target, "--yes"]) for target in TARGETS] == [0, 0]
    assert places_held(home, word) == set()
    assert main(["search", CHILD_QUESTION]) == 0, "what the others said stays"


@pytest.mark.slow
def test_also_when_it_was_killed_and_completed_later(tmp_path: Path) -> None:
    word = plant_home(tmp_path / "whole")
    struck, left = erasure.killed(tmp_path / "whole", tmp_path, word, took=1.0, kills=10)
    assert struck.value and left.value == 0, left
