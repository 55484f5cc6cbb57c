"""A program in a real terminal: tmux of its own, driven by keys, read off the screen.

    with Pane(folder, command, env, size=(80, 24)) as pane:
        pane.wait("You:")
        pane.type("hello")
        pane.press("Enter")
        assert "answer" in pane.wait("answer 1")

`screen` is what a person sees now; `text` is all that was ever on it, with lines that the edge has broken put together. The
status line is off, so that the program has the size that was asked for. When the program has ended, what it left on the screen can still be read.
"""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

PATIENCE = 300.0  # seconds until what does not come is given up
_CONFIG = "set -g status off\nset -g history-limit 20000\nset -s escape-time 0\n"
_ENDED = re.compile(r"\[ended (\d+)\]\s*$")
_number = count()  # of a server: one that is ending must not be asked for another pane


class Pane:
    """One program. `env` is all of its environment; without one it has that of the tests, but for the size of a screen."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        size: tuple[int, int] = (100, 40),
        cwd: Path | None = None,
    ) -> None:
        number = next(_number)
        config = folder / f"tmux{number}.conf"
        config.write_text(_CONFIG)
        self._tmux = ("tmux", "-u", "-S", str(folder / f"tmux{number}"), "-f", str(config))
        around = {**(os.environ if env is None else env), "TERM": "screen-256color", "LC_ALL": "C.UTF-8"}
        named = [f"{name}={value}" for name, value in around.items() if name not in ("COLUMNS", "LINES", "TMUX")]
        width, height = map(str, size)
        place = ("-c", str(cwd)) if cwd is not None else ()
        self._pid = folder / f"tmux{number}.pid"
        begin = f"echo $$ >{shlex.quote(str(self._pid))}; exec {shlex.join(['env', '-i', *named, *command])}"
        # A shell stays behind it: tmux itself may miss how a program ended.
        line = f"sh -c {shlex.quote(begin)}; echo [ended $?]; exec cat"
        self._run("new-session", "-d", "-s", "it", "-x", width, "-y", height, *place, line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self._run("kill-server")

    # looking ----------------------------------------------------------------------------------------------------------
    def screen(self, colours: bool = False) -> str:
        """What is to be seen."""
        return self._run("capture-pane", "-p", "-t", "it", *(["-e"] if colours else []))

    def text(self) -> str:
        """All that was to be seen so far."""
        return self._run("capture-pane", "-p", "-J", "-S", "-", "-t", "it")

    def wait(self, shows: str | Callable[[str], bool], everything: bool = False) -> str:
        """The screen (or all that was on it), once it shows something."""
        is_there = (lambda text: shows in text) if isinstance(shows, str) else shows
        end = time.monotonic() + PATIENCE
        while not is_there(seen := self.text() if everything else self.screen()):
            assert time.monotonic() < end, f"{shows!r} did not come:\n{seen}"
            time.sleep(0.05)
        return seen

    # typing -----------------------------------------------------------------------------------------------------------
    def press(self, *keys: str) -> None:
        """Press keys, by their names."""
        self._run("send-keys", "-t", "it", *keys)

    def type(self, text: str) -> None:
        """Type words as they are."""
        self._run("send-keys", "-t", "it", "-l", "--", text)

    def paste(self, text: str) -> None:
        """Paste a block."""
        self._run("set-buffer", "--", text)
        self._run("paste-buffer", "-p", "-t", "it")

    def resize(self, width: int, height: int) -> None:
        """Another size."""
        self._run("resize-window", "-t", "it", "-x", str(width), "-y", str(height))

    # ending -----------------------------------------------------------------------------------------------------------
    def kill(self) -> None:
        """End the program without a word (`kill -9`)."""
        os.kill(int(self._pid.read_text()), signal.SIGKILL)
        self.ended()

    def ended(self) -> int:
        """Wait for the end; the exit status as shells tell it."""
        return int(_ENDED.findall(self.wait(lambda text: _ENDED.search(text) is not None, everything=True))[-1])

    def _run(self, *words: str) -> str:
        # A tmux that the tests themselves may run in is not to be heard of.
        env = {name: value for name, value in os.environ.items() if name != "TMUX"} | {"LC_ALL": "C.UTF-8"}
        done = subprocess.run([*self._tmux, *words], capture_output=True, text=True, env=env, timeout=600, check=False)
        return done.stdout
