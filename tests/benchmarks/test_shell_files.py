"""Random shell commands that really run: nothing is said to be touched that is not, and little is missed."""

from __future__ import annotations

import random
import shutil
import sys

import pytest

from benchmarks.shell_files import measure_commands, random_command

needs_bash = pytest.mark.skipif(
    not shutil.which("bash") or sys.platform != "linux", reason="needs bash and the programs of GNU"
)


@needs_bash
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(4))
def test_what_random_commands_are_said_to_touch_is_what_they_touched(seed: int) -> None:
    score = measure_commands(60, seed)
    assert score.said == score.right == score.same_action, "\n".join(score.faults)
    assert score.right >= 0.85 * score.changed, "\n".join(score.faults)


def test_the_commands_of_a_seed_are_always_the_same() -> None:
    files = ["src/a.py", "src/b.py", "docs/c.md", "docs/d.md", "config/e.json"]
    assert random_command(random.Random(3), [*files]) == random_command(random.Random(3), [*files])
