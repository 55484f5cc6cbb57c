"""What the tests of the reading commands stand on: an archive in a file, and the command line in and out of process."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import everturn
from everturn.cli import main
from everturn.store.contract import open_store
from tests import command_line
from tests.capture.history import SID
from tests.recall.archives import Archive

#: What a transcript may try on a terminal: title, clear, colour, bell, C1, direction, fake line ends, alternate screen.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b1A\u202etxet\r\x08\x85 \x1b[?1049h end"
ACTIVE = set("\x1b\x07\x08\x9b\x85\u202e\r")
KEY = "AKIA" + "Q7XW2MZP4RTY5LNB"


class Desk:
    """One archive and the person in front of it."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.db = folder / "archive.db"
        self.archive = Archive(open_store(str(self.db)), folder / "agent")
        self._capsys = capsys

    def take_in(self, *pieces: bytes, sid: str = SID, **more: Any) -> None:
        """Put a transcript into the archive."""
        self.archive.take_in(*pieces, sid=sid, **more)

    def run(self, *words: str) -> tuple[int, str, str]:
        """Exit code, stdout and stderr of a command line."""
        self._capsys.readouterr()
        code = main([*words, "--db", str(self.db)])
        said = self._capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    def json(self, *words: str) -> dict[str, Any]:
        """The answer of a command line as JSON."""
        code, out, _ = self.run(*words, "--json")
        assert code in (0, 3), out
        found: dict[str, Any] = json.loads(out)
        return found

    def process(self, *words: str, stdout: int = subprocess.PIPE, **env: str) -> subprocess.CompletedProcess[bytes]:
        """The command line in a process of its own."""
        around = {**os.environ, "PYTHONPATH": str(Path(everturn.__file__).parent.parent), "PYTHONUTF8": "1", **env}
        return command_line.run((*words, "--db", str(self.db)), around, stdout=stdout)
