"""The examples of docs/integrations.md run, and each is short."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import is_installed

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = dict(
    re.findall(
        r"<!-- needs (\w+) -->\n```python\n(.*?)```", (ROOT / "docs" / "integrations.md").read_text("utf-8"), re.S
    )
)


def test_there_is_an_example_for_each_framework() -> None:
    assert sorted(EXAMPLES) == ["agents", "claude_agent_sdk", "langgraph", "mcp", "pydantic_ai"]


@pytest.mark.few(2)
@pytest.mark.parametrize("module", sorted(EXAMPLES))
def test_the_example_runs(module: str, tmp_path: Path) -> None:
    if not is_installed(f"module:{module}"):
        pytest.skip(f"needs module:{module}, which is not installed")
    program = tmp_path / "example.py"
    program.write_text(EXAMPLES[module], "utf-8")
    paths = {"PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path), "PATH": ""}
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, env=paths, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "archive.db").exists()


@pytest.mark.parametrize("module", sorted(EXAMPLES))
def test_the_example_is_short(module: str) -> None:
    assert sum(bool(line.strip()) for line in EXAMPLES[module].splitlines()) <= 25
