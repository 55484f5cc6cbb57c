"""The browser on a terminal: what the first screen costs, and going to the end of a long session."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from importlib.util import find_spec

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure
from benchmarks.ingest import taken_in
from benchmarks.processes import EVERTURN, MB, PYTHON, Failed, Place, cpu_of, peak_of, run

_SESSIONS = 10_000
_TURNS = 10_000
_STARTS = 7
_PAINT = 0.5  # CPU seconds
_MEMORY = 150  # MB
_PATIENCE = 60.0
_LIBRARY = "from textual.app import App; from textual.widgets import Input"


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Over ten thousand sessions, then over one of ten thousand turns."""
    if not sys.platform.startswith("linux") or find_spec("textual") is None:
        yield Figure("browse", None, note="needs Linux, to read what a running process used, and textual")
        return
    corpus = corpora.sessions(_SESSIONS)
    if not corpus.costs:
        corpus.costs.append(taken_in(corpus))
    starts = [_first_screen(corpus.place) for _ in range(_STARTS)]
    # Whatever else runs on the machine can only add to what a start takes.
    note = f"{_SESSIONS:,} sessions, 80×24, least of {_STARTS} starts"
    yield Figure("browse, first screen", min(cpu for cpu, _ in starts), "CPU-s", _PAINT, note=note)
    yield Figure("browse, peak memory", max(peak for _, peak in starts) / MB, "MB", _MEMORY, note=note)
    library = min(run((*PYTHON, "-c", _LIBRARY), corpus.place.env).cpu for _ in range(_STARTS))
    yield Figure("  of that, importing the library", library, "CPU-s", note="the same imports and nothing else")
    yield from _long_session(corpora)


def _first_screen(place: Place) -> tuple[float, int]:
    with _Screen(place) as screen:
        screen.wait("▌")
        return screen.cpu(), screen.peak()


def _long_session(corpora: Corpora) -> Iterator[Figure]:
    place = Place(corpora.folder / "long-session")
    path = place.claude / "projects" / "-home-ann-long" / "00000000-0000-4000-8000-000000010000.jsonl"
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        file.writelines(long_turn(number) for number in range(_TURNS))
    run((*EVERTURN, "sync"), place.env)
    with _Screen(place, "@last") as screen:
        screen.wait("question 0 ")
        before = screen.cpu()
        screen.press("G")
        screen.wait(f"answer {_TURNS - 1} ")
        yield Figure("browse, to the end of a session", screen.cpu() - before, "CPU-s", 0.2, note=f"{_TURNS:,} turns")


def long_turn(number: int) -> bytes:
    """A turn of a session that has very many of them."""
    at = f"2026-03-{1 + number // 1440:02d}T{number // 60 % 24:02d}:{number % 60:02d}:00.000Z"
    head = (
        '{"parentUuid":null,"isSidechain":false,"cwd":"/home/ann/long","version":"2.1.50","timestamp":"%s",'
        '"sessionId":"00000000-0000-4000-8000-000000010000","uuid":"00000000-0000-4000-%04d-%012d",'
    )
    asked = f'"type":"user","message":{{"role":"user","content":"question {number} ?"}}}}\n'
    answered = (
        f'"type":"assistant","message":{{"id":"msg_{number}","role":"assistant","model":"m","type":"message",'
        f'"content":[{{"type":"text","text":"answer {number} ."}}]}}}}\n'
    )
    return (head % (at, 8000, number) + asked + head % (at, 8001, number) + answered).encode()


class _Screen:
    """The browser in a terminal of its own, read and typed into."""

    def __init__(self, place: Place, *words: str) -> None:
        env = {**place.env, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.execve(EVERTURN[0], [*EVERTURN, "browse", *words], env)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))

    def __enter__(self) -> _Screen:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)

    def wait(self, text: str) -> None:
        """Until it has been drawn. Raises Failed."""
        wanted, seen, end = text.encode(), b"", time.monotonic() + _PATIENCE
        while wanted not in seen:
            ready, _, _ = select.select([self._terminal], [], [], max(0.0, end - time.monotonic()))
            try:
                more = os.read(self._terminal, 1 << 16) if ready else b""
            except OSError:  # it has ended
                more = b""
            if not more:
                raise Failed(f"browse did not show {text!r}: …{seen[-300:].decode('utf-8', 'replace')!r}")
            seen = seen[-8192:] + more

    def press(self, key: str) -> None:
        """Type something."""
        os.write(self._terminal, key.encode())

    def cpu(self) -> float:
        """Seconds of processor it has used so far, all its threads together."""
        return cpu_of(self._pid)

    def peak(self) -> int:
        """The most memory it has had, in bytes."""
        return peak_of(self._pid)
