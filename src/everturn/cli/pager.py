"""A pager for long output on a terminal: `$PAGER`, else `less`. What fits on one screen is printed as it is.

Messages to stderr are held back while the pager has the screen, and printed when it ends.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from shutil import which

from everturn.cli.output import Output

_NO_PAGERS = ("", "cat")
_LESS = "-RFX"  # colours, leave at once if it fits on the screen, keep what was shown


@contextmanager
def paged(out: Output) -> Iterator[None]:
    """Send what a command prints through the pager, on a terminal and without --json."""
    program = _pager(out)
    if program is None:
        yield
        return
    env = {**out.env, "LESS": out.env.get("LESS", _LESS)}
    process = subprocess.Popen(program, stdin=subprocess.PIPE, env=env)
    assert process.stdin is not None
    shown, screen = out.stdout, TextIOWrapper(process.stdin, encoding="utf-8", errors="replace")
    out.begin_paging(screen)
    try:
        with suppress(BrokenPipeError):  # the reader has seen enough
            yield
            screen.flush()
    finally:
        with suppress(BrokenPipeError):
            screen.close()
        _wait(process)
        out.end_paging(shown)


def _pager(out: Output) -> list[str] | None:
    if out.json or not out.on_terminal:
        return None
    words = shlex.split(out.env.get("EVERTURN_PAGER", out.env.get("PAGER", "less")))
    if not words or words[0] in _NO_PAGERS or os.name == "nt":
        return None
    program = which(words[0])
    return [program, *words[1:]] if program else None


def _wait(process: subprocess.Popen[bytes]) -> None:
    while True:
        try:
            process.wait()
            return
        except KeyboardInterrupt:  # Ctrl-C belongs to the pager
            continue
