"""tmux as the judge: replay bytes in a real terminal and read what it shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

from everturn.sources.terminal.grid import UNCHANGED, foreground
from everturn.sources.terminal.sequences import LINE_DRAWING
from everturn.sources.terminal.transcript import Colour

#: Runs inside the pane: writes the bytes, and says so once the terminal has answered a question behind them.
FEEDER = """
import os, subprocess, sys, time, tty
tty.setraw(0)
data = open(sys.argv[1], "rb").read() + b"\\x1b\\\\\\x1b[5n"
while data:
    data = data[os.write(1, data[:4096]):]
answer = b""
while not answer.endswith(b"\\x1b[0n"):
    answer += os.read(0, 4096)
subprocess.run(["tmux", "-S", sys.argv[2], "wait-for", "-S", "shown"])
time.sleep(3600)
"""

#: A character and its colour; blanks have none.
Cell = tuple[str, Colour]


class Tmux:
    """A server of our own, with a pane for each size asked for."""

    def __enter__(self) -> Tmux:
        self._folder = TemporaryDirectory(prefix="everturn-tmux-")
        folder = Path(self._folder.name)
        self._socket, self._input = str(folder / "socket"), folder / "input"
        (folder / "feeder.py").write_text(FEEDER)
        (folder / "config").write_text("set -g status off\nset -g history-limit 50000\nset -g remain-on-exit on\n")
        self._config = str(folder / "config")
        self._feed = f"{sys.executable} -I -S {folder / 'feeder.py'} {self._input} {self._socket}"
        self._sizes: set[str] = set()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, what: BaseException | None, where: TracebackType | None
    ) -> None:
        if self._sizes:
            self._run("kill-server")
        self._folder.cleanup()

    def replay(self, data: bytes, columns: int, rows: int, *options: str) -> str:
        """What `capture-pane` prints after these bytes."""
        self._input.write_bytes(data)
        pane = self._pane(columns, rows)
        self._run("respawn-pane", "-k", "-t", pane, self._feed)
        self._run("wait-for", "shown")
        return self._run("capture-pane", "-p", "-t", pane, *options)

    def version(self) -> str:
        """Of the program."""
        return self._run("-V").strip()

    def _pane(self, columns: int, rows: int) -> str:
        """One session for each size: a pane that has just been resized may still change under our hands."""
        name = f"{columns}x{rows}"
        if name not in self._sizes:
            self._run("new-session", "-d", "-s", name, "-x", str(columns), "-y", str(rows), "sleep 3600")
            self._sizes.add(name)
        return name

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-f", self._config, "-S", self._socket, *words],
            capture_output=True,
            check=True,
            timeout=600,
            env={"LC_ALL": "C.UTF-8", "PATH": "/usr/local/bin:/usr/bin:/bin", "TERM": "xterm-256color"},
        )
        return done.stdout.decode("utf-8")


def painted(captured: str) -> list[list[Cell]]:
    """The rows of `capture-pane -e`, each character with its colour, without trailing blanks."""
    colour: Colour = None
    drawing = False
    rows = []
    for line in captured.removesuffix("\n").split("\n"):
        row: list[Cell] = []
        for sequence, shift, text in re.findall(r"\x1b\[([\d;:]*)m|([\x0e\x0f])|([^\x1b\x0e\x0f]+)", line):
            if text:
                row += [(char, colour) for char in (text.translate(LINE_DRAWING) if drawing else text)]
            elif shift:
                drawing = shift == "\x0e"
            else:
                changed = foreground(sequence)
                colour = colour if changed == UNCHANGED else changed
        rows.append(trimmed(row))
    return rows


def trimmed(row: list[Cell]) -> list[Cell]:
    """Blanks without a colour, none at the end."""
    row = [(char, None if char == " " else colour) for char, colour in row]
    while row and row[-1][0] == " ":
        row.pop()
    return row
