"""The command line as a person meets it: a process of its own, with its own words and exit code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from tests import command_line
from tests.faults.injection import HERE, environment


class Desktop:
    """A person's machine: one folder for everturn, one with the agent's history."""

    def __init__(self, home: Path, history: Path) -> None:
        self.home = home
        self.archive = home / "archive.db"
        self.history = history
        home.mkdir(parents=True, exist_ok=True)
        (home / "config.toml").write_text('machine = "box"\nowner = "ann"\n')

    def run(
        self, *words: str, before: Sequence[str] = (), program: str = "everturn", patience: int = 600
    ) -> subprocess.CompletedProcess[str]:
        """One command, to its end. `before` is put in front of it, such as strace with its options."""
        if not before and program == "everturn":
            done = command_line.run(words, self._environment(), cwd=HERE, timeout=patience)
            return subprocess.CompletedProcess(words, done.returncode, done.stdout.decode(), done.stderr.decode())
        return subprocess.run(
            [*before, sys.executable, "-m", program, *words],
            cwd=HERE, env=self._environment(), capture_output=True, text=True, timeout=patience, check=False,
        )  # fmt: skip

    def start(self, *words: str, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """A command that goes on while the test does."""
        return subprocess.Popen(
            [*before, sys.executable, "-m", "everturn", *words],
            cwd=HERE, env=self._environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def fingerprint(self) -> dict[str, str]:
        """What is on disk below the home folder, to see that nothing was changed."""
        return {
            str(path.relative_to(self.home)): sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.home.rglob("*"))
            if path.is_file() and not path.name.endswith("-shm")  # shared memory of readers, not data
        }

    def _environment(self) -> dict[str, str]:
        return environment(EVERTURN_HOME=str(self.home), CLAUDE_CONFIG_DIR=str(self.history))


@contextmanager
def ended(*processes: subprocess.Popen[str]) -> Iterator[None]:
    """Whatever happens, the processes do not outlive the block."""
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def sentence(stderr: str) -> str:
    """The one sentence a failed command says."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    assert len(lines) == 1, stderr
    assert lines[0].startswith("everturn: "), stderr
    return lines[0].removeprefix("everturn: ")
