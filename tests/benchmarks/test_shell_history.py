"""Random commands of version control that really run: the commits that are said to be void are those that no branch reaches."""

from __future__ import annotations

import shutil
import sys

import pytest

from benchmarks.shell_history import measure_histories

needs_git = pytest.mark.skipif(
    not (shutil.which("git") and shutil.which("bash")) or sys.platform != "linux", reason="needs bash and git"
)


@needs_git
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(2))
def test_the_commits_that_are_said_to_be_void_are(seed: int) -> None:
    score = measure_histories(12, seed)
    assert score.right >= 0.9 * score.said, "\n".join(score.faults)
    assert score.right >= 0.9 * score.void, "\n".join(score.faults)
