"""The gate does not go green by looking away: tests of an installed tool may not be skipped in CI."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TESTS = """
import pytest

@pytest.mark.needs("no-such-tool-anywhere")
def test_of_a_missing_tool():
    raise AssertionError("must not run")

@pytest.mark.needs("sh")
def test_of_a_tool_that_is_there():
    if {skips}:
        pytest.skip("sh does not like it here")

@pytest.mark.needs("module:click")
def test_of_a_module():
    pass
"""


def outcome(folder: Path, skips: bool, **env: str) -> str:
    (folder / "test_it.py").write_text(TESTS.format(skips=skips))
    child = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.needs", "-p", "no:cacheprovider", "-rs", str(folder)],
        check=False, capture_output=True, text=True, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT), **env},
    )  # fmt: skip
    return child.stdout


@pytest.mark.slow
def test_a_missing_tool_skips_with_its_name(tmp_path: Path) -> None:
    shown = outcome(tmp_path, skips=False, EVERTURN_REQUIRE_TOOLS="1")
    assert "2 passed, 1 skipped" in shown
    assert "needs no-such-tool-anywhere, which is not installed" in shown


@pytest.mark.slow
def test_a_skip_in_spite_of_the_tool_fails_in_ci_only(tmp_path: Path) -> None:
    assert "1 passed, 2 skipped" in outcome(tmp_path, skips=True)
    strict = outcome(tmp_path, skips=True, EVERTURN_REQUIRE_TOOLS="1")
    assert "1 failed, 1 passed, 1 skipped" in strict
    assert "sh is installed, yet the test was skipped" in strict
