"""Run the server of a team's archive until it is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import closing

import uvicorn

from everturn.clock import Clock
from everturn.errors import EverturnError, UsageError
from everturn.store.contract import open_store
from everturn.team.app import TeamServer

Say = Callable[[str], None]


def serve_team(
    url: str, address: tuple[str, int], tls: tuple[str | None, str | None], clock: Clock, log: Say, say: Say
) -> None:
    """Serve until interrupted. Raises EverturnError if the archive is not shared or the port cannot be used."""
    with closing(open_store(url, create=False, upgrade=False)) as store:
        if not store.setting("shared"):
            raise UsageError(f"{store.url} is not shared; run `everturn admin init` first")
    server = TeamServer(url, clock, log)
    if done := server.finish_interrupted():
        say(f"{done} files that were pushed before the server stopped are complete now")
    try:
        listener = socket.create_server(address, backlog=512)
    except OSError as error:
        raise EverturnError(f"port {address[1]} cannot be used: {error.strerror}; name another with --port") from error
    host, port = listener.getsockname()[:2]
    say(f"serving {'https' if tls[0] else 'http'}://{host}:{port}; Ctrl-C ends")
    config = uvicorn.Config(
        server.application(), log_level="critical", access_log=False, lifespan="off", server_header=False, ws="none",
        timeout_graceful_shutdown=10, ssl_certfile=tls[0], ssl_keyfile=tls[1],
    )  # fmt: skip
    try:
        uvicorn.Server(config).run([listener])
    finally:
        listener.close()
        server.close()
