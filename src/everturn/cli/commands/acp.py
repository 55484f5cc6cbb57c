"""Serve the archive to editors over the Agent Client Protocol."""

from __future__ import annotations

import sys

from everturn import __version__
from everturn.cli import frame


@frame.command("everturn acp", json=False, reveal=True)
def command(cx: frame.CommandContext) -> None:
    """Serve the archive over the Agent Client Protocol, on stdin and stdout: a client lists and opens every session.

    An editor that can list and load sessions of an agent shows the sessions of all agents. Register `everturn acp` there as an
    agent. Everything is read only and masked; a prompt is answered with the command that continues the session in its own agent.
    """
    from everturn.acp.server import AcpServer

    clean = (lambda text: text) if cx.out.reveal else cx.out.clean
    server = AcpServer(cx.store(), cx.sources, clean, __version__)
    out = sys.stdout.buffer

    def write(line: bytes) -> None:
        out.write(line)
        out.flush()

    server.serve(sys.stdin.buffer, write)
