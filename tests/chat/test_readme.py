"""The table of requirements beside these tests is complete, and names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
ROWS = dict(re.findall(r"^\| (S[24]-\d\d) \|.*\| (.*) \|$", (HERE / "README.md").read_text("utf-8"), re.MULTILINE))


def test_every_row_is_shown_by_tests_that_exist() -> None:
    assert [row for row in ROWS if row.startswith("S4")] == [f"S4-{number:02}" for number in range(1, 36)]
    named = {name for tests in ROWS.values() for name in re.findall(r"`([^`]+)`", tests)}
    missing = [name for name in sorted(named) if not _is_there(*name.split("::"))]
    assert missing == [] and all("::" in tests for tests in ROWS.values())


def _is_there(file: str, test: str) -> bool:
    return f"def {test}(" in (HERE / file).read_text("utf-8")
