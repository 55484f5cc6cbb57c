"""One line for an agent's status line: is this session archived?"""

from __future__ import annotations

import sys

from everturn import clock
from everturn.cli import frame

_MOST = 1 << 20


@frame.command("everturn statusline < event.json", "everturn install all --statusline")
def command(cx: frame.CommandContext) -> None:
    """Print one line about the session that an agent describes in JSON on stdin: archived or not, its tokens, since when.

    Agents run this themselves, once `everturn install --statusline` has told them to (as `everturn-hook --statusline`, which
    starts faster). It reads what the last drain has made ready and opens no archive.
    """
    from everturn.capture.hook_answer import read_status, status_line

    data = sys.stdin.buffer.read(_MOST) if not sys.stdin.isatty() else b""
    found = read_status(data, str(cx.settings.state / "context"))
    if cx.json:
        cx.out.emit_json("statusline", [found])
    else:
        cx.out.emit(status_line(found, clock.now()))
