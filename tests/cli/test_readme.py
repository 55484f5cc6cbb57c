"""Every command that README.md tells a person to try runs on the sample history."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path

import pytest

from tests.command_line import run

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
COMMANDS = [
    re.sub(r"\s+#.*", "", line)
    for block in re.findall(r"^```\n(.*?)^```", README, re.M | re.S)
    for line in block.splitlines()
    if line.startswith("everturn ")
]
#: Commands that go on until they are stopped, or need what a checkout may not have.
SERVERS = ("everturn web --open",)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Run `everturn` on a machine without history, which makes the sample archive."""
    home = tmp_path_factory.mktemp("home")
    (home / ".claude" / "projects").mkdir(parents=True)  # an agent that was installed and never used
    env = {**os.environ, "HOME": str(home), "EVERTURN_HOME": str(home / "archive"), "NO_COLOR": "1"}
    done = run((), env, cwd=home)
    assert done.returncode == 0, done.stderr
    env["EVERTURN_DB"] = str(home / "archive" / "sample.db")
    assert Path(env["EVERTURN_DB"]).is_file(), done.stdout
    return env


def test_the_readme_has_commands() -> None:
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("command", [one for one in COMMANDS if one not in SERVERS])
def test_a_command_of_the_readme_runs(command: str, sample: dict[str, str], tmp_path: Path) -> None:
    words = re.findall(r'"[^"]*"|\S+', command)[1:]
    is_why = words[0] == "why"
    if is_why and not (ROOT / ".git").exists():
        pytest.skip("not in a git checkout")
    done = run([word.strip('"') for word in words], sample, cwd=ROOT if is_why else tmp_path)
    assert b"Traceback" not in done.stderr
    # 4 is "something needs attention" (doctor), which is true of a machine without history.
    assert done.returncode in ((0, 4) if words[0] == "doctor" else (0,)), done.stderr
    assert done.stdout.strip() or words[0] == "export"


def test_the_recording_names_no_folder_of_the_machine_that_drew_it() -> None:
    drawn = (ROOT / "docs" / "images" / "terminal.svg").read_text("utf-8")
    folders = set(re.findall(r"(?<![\w~.…])/(\w+)/", html.unescape(re.sub(r"<style>.*?</style>|xmlns=\S+", "", drawn))))
    assert folders <= {"home"}
