"""Run the server of a team's archive until it is stopped."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path

import uvicorn

from everturn.clock import Clock
from everturn.errors import EverturnError, UsageError
from everturn.store.contract import open_store
from everturn.team.app import TeamServer

Say = Callable[[str], None]
_DAY = 86_400.0  # seconds


def serve_team(
    url: str,
    address: tuple[str, int],
    tls: tuple[str | None, str | None],
    clock: Clock,
    log: Say,
    say: Say,
    repositories: Mapping[str, Path],
) -> None:
    """Serve until interrupted. Raises EverturnError if the archive is not shared or the port cannot be used."""
    with closing(open_store(url, create=False, upgrade=False)) as store:
        if not store.setting("shared"):
            raise UsageError(f"{store.url} is not shared; run `everturn admin init` first")
    server = TeamServer(url, clock, log, repositories)
    if done := server.finish_interrupted():
        say(f"{done} files that were pushed before the server stopped are complete now")
    ended = threading.Event()
    keeper = threading.Thread(target=_expire_daily, args=(server, ended, say), daemon=True)
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
    keeper.start()
    try:
        uvicorn.Server(config).run([listener])
    finally:
        ended.set()
        listener.close()
        server.close()


def named_folders(given: Iterable[str]) -> dict[str, Path]:
    """Read PROJECT=FOLDER. Raises UsageError."""
    found = {}
    for one in given:
        name, _, folder = one.partition("=")
        if not name or not folder or not Path(folder).is_dir():
            raise UsageError(f"{one!r} is not PROJECT=FOLDER with a folder that exists")
        found[name] = Path(folder).resolve()
    return found


def _expire_daily(server: TeamServer, ended: threading.Event, say: Say) -> None:
    """Erase expired sessions now and once a day, until the server ends. A failure is tried again the next day."""
    while True:
        try:
            if done := server.expire():
                say(f"{done} files are older than the retention rules keep them; they were erased")
        except EverturnError as error:
            say(f"expired sessions were not erased: {error}")
        if ended.wait(_DAY):
            return
