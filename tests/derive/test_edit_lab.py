"""Transcripts with known edits and commits: nothing is missed and nothing is invented."""

from __future__ import annotations

import pytest

from tests.derive.edit_lab import play_edits


@pytest.mark.few(2)
@pytest.mark.parametrize("first", range(0, 200, 50))
def test_the_files_and_commits_are_exactly_those_played(first: int) -> None:
    for seed in range(first, first + 50):
        lab, state = play_edits(seed)
        changed = {one.path for one in state.files.values() if one.count}
        log = f"seed {seed} in {lab.root}\n" + "\n".join(lab.log)
        assert {path.lower() for path in changed} == {path.lower() for path in lab.edited}, log
        assert len(changed) == len({path.lower() for path in changed}), log
        assert {one.hash: one.replaced for one in state.commits} == lab.commits, log


def test_the_lab_plays_edits_and_commits() -> None:
    labs = [play_edits(seed)[0] for seed in range(60)]
    assert sum(len(lab.edited) for lab in labs) > 300
    assert sum(len(lab.commits) for lab in labs) > 50
    assert any(replaced for lab in labs for replaced in lab.commits.values())
    assert play_edits(3)[0].log == play_edits(3)[0].log
