"""Do what docs/first-steps.md tells a newcomer to do, on a machine without history, and write down what is printed.

    python scripts/newcomer.py           run every command of the page and write its output into the page
    python scripts/newcomer.py --clone   the same from `git clone` and `make run` on; installs into a new folder

`tests/test_docs.py` runs the commands and compares the output with the page. Times, ids and folders differ from run to run;
`comparable` replaces them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "first-steps.md"
FOLDER = "/home/you/everturn"  # where the page is read
WIDTH = 88
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_CHANGING = (
    (re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "ID"),
    (re.compile(r"\d+ (?:second|minute|hour|day|week|month|year)s? ago|\b\d+(?:s|min|h|d|w|mo|y)\b"), "TIME"),
    (re.compile(r"\d[\d,.]* (?:bytes|MB)"), "SIZE"),
    (re.compile(r"\s+"), " "),
)


def typed(text: str) -> list[tuple[str, str]]:
    """Return each command of a page and what the page says it prints."""
    return [(command, printed) for block in _BLOCK.findall(text) for command, printed in _COMMAND.findall(block)]


def comparable(text: str) -> str:
    """Return a text without what differs from run to run: times, new ids, sizes, the width of columns."""
    for pattern, word in _CHANGING:
        text = pattern.sub(word, text)
    return text.strip()


def newcomer_environment(home: Path, programs: Path) -> dict[str, str]:
    """Return the environment of somebody who has just opened a terminal."""
    return {
        "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(home), "LANG": "C.UTF-8", "COLUMNS": str(WIDTH),
        "FORCE_COLOR": "1", "PAGER": "cat", "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1",
    }  # fmt: skip


def run(command: str, folder: Path, env: dict[str, str]) -> str:
    """Run one command in the folder of the checkout and return what it prints, with the folder of the page."""
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"`{command}` ended with {done.returncode}:\n{done.stdout}")
    printed = _STYLE.sub("", done.stdout).replace(str(folder), FOLDER)
    printed = printed.replace(_project_name(str(folder)), _project_name(FOLDER))
    printed = printed.replace(str(folder.parent), str(Path(FOLDER).parent))
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def _project_name(folder: str) -> str:
    """Return the name that Claude Code gives to the folder of a workspace."""
    return re.sub(r"[^A-Za-z0-9]", "-", folder)


def make_program(folder: Path) -> Path:
    """Write the program `everturn` of this checkout into a folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "everturn"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT / "src"}" exec "{sys.executable}" -m everturn "$@"\n', "utf-8")
    program.chmod(0o755)
    return folder


def follow(text: str, folder: Path, env: dict[str, str]) -> list[tuple[str, str, str]]:
    """Run every command of a page in order; return each with what the page says and what was printed."""
    done = []
    for command, said in typed(text):
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            env = {**env, name: value.replace("$PWD", str(folder))}
            done.append((command, said, ""))
        else:
            done.append((command, said, run(command, folder, env)))
    return done


def main() -> None:
    page = PAGE.read_text("utf-8")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "everturn"
        if "--clone" in sys.argv:
            subprocess.run(["git", "clone", "--quiet", str(ROOT), str(folder)], check=True)
            subprocess.run(["make", "run"], cwd=folder, env={**os.environ, "HOME": made}, check=True)
            programs = folder / ".venv" / "bin"
        else:
            folder.mkdir()
            programs = make_program(Path(made) / "bin")
        env = {**newcomer_environment(Path(made), programs), "EVERTURN_HOME": str(folder / ".everturn")}
        done = follow(page, folder, env)
    for command, said, printed in done:
        page = page.replace(f"$ {command}\n{said}", f"$ {command}\n{printed}", 1)
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
