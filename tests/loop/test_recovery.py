"""Sessions whose process died are found and resumed, each by one worker."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from everturn.loop.journal import Journal, open_archive
from everturn.loop.loop import Loop
from everturn.loop.recovery import recover, unfinished_sessions
from everturn.loop.tools import tool
from tests import command_line
from tests.loop.scripted_model import Model, says

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, pathlib, signal, sys
from everturn import Journal, Loop, tool
from tests.loop.scripted_model import Model, calls, says

here = pathlib.Path(__file__).parent

@tool(policy="fail")
def effect() -> str:
    "Do it."
    with open(here / "ledger", "a") as ledger:
        ledger.write("x")
    if len(sys.argv) > 1 and sys.argv[1] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return "done"

loop = Loop(Model([calls(("a", "effect")), says("ok")]), [effect])

if __name__ == "__main__":
    with Journal.open(here / "archive.db", sys.argv[2]) as journal:
        loop.run(journal, "go")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(PROGRAM)
    open_archive(str(tmp_path / "archive.db")).close()
    for session in ("one", "two"):
        words = [sys.executable, "agent.py", "die", session]
        assert subprocess.run(words, cwd=tmp_path, env=_env(tmp_path), check=False).returncode == -signal.SIGKILL
    return tmp_path


def _env(folder: Path) -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {
        "PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": paths, "EVERTURN_HOME": str(folder / "home"),
        "EVERTURN_DB": str(folder / "archive.db"), "NO_COLOR": "1",
    }  # fmt: skip


def test_two_workers_resume_each_session_once(folder: Path) -> None:
    @tool(policy="fail")
    def effect() -> str:
        """Never again."""
        raise AssertionError

    loop = Loop(Model([says(""), says("ok")]), [effect], interactive=False)
    first, second = open_archive(str(folder / "archive.db")), open_archive(str(folder / "archive.db"))
    assert [one.in_doubt for one in unfinished_sessions(first)] == [("effect",), ("effect",)]
    ones, others = recover(first, lambda past: loop), recover(second, lambda past: loop)
    done = [next(ones), next(others), *ones, *others]  # both have seen both
    assert sorted(one.session for one in done) == ["one", "two"]
    assert {one.outcome.state for one in done} == {"done"}
    assert list(unfinished_sessions(first)) == [] and (folder / "ledger").read_text() == "xx"
    first.close()
    second.close()


def test_a_session_that_no_program_wants_stays_unfinished(folder: Path) -> None:
    store = open_archive(str(folder / "archive.db"))
    assert list(recover(store, lambda past: None)) == []
    assert len(list(unfinished_sessions(store))) == 2
    with Journal.open(store, "one"):
        assert [one.session for one in unfinished_sessions(store)] == ["two"]
    store.close()


@pytest.mark.slow
def test_the_command_lists_them_and_resumes_them_with_a_program(folder: Path) -> None:
    def run(*words: str) -> tuple[int, str, str]:
        done = command_line.run(("recover", *words), _env(folder), cwd=folder)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    code, listed, _ = run()
    assert code == 0 and "one  in doubt: effect" in listed and "two" in listed
    code, _, told = run("--with", "agent:nobody")
    assert code == 2 and "nobody" in told and "Traceback" not in told
    code, done, told = run("--with", "agent:loop")
    assert code == 0 and "one  done" in done and "two  done" in done, told
    assert (folder / "ledger").read_text() == "xx"
    assert "no session is unfinished" in run()[2]
