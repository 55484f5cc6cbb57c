"""Running the server: a socket on the loopback interface, a port that is free, an end that is clean."""

from __future__ import annotations

import socket
from collections.abc import Callable

from everturn.errors import EverturnError
from everturn.web.security import KEY
from everturn.web.site import Site

HOST = "127.0.0.1"
PORT = 8760
_PORTS_TRIED = 20  # ports from the usual one on, when none was named


def serve_site(site: Site, port: int | None, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; `ready` is told the address. Raises EverturnError when no port can be had."""
    import uvicorn

    from everturn.web.app import application

    listener = open_listener(port)
    bound = listener.getsockname()[1]
    config = uvicorn.Config(
        application(site, bound), log_level="critical", access_log=False, lifespan="off", server_header=False,
        timeout_graceful_shutdown=3, ws="none",
    )  # fmt: skip
    ready(f"http://{HOST}:{bound}/" + (f"?{KEY}={site.key}" if site.key else ""))
    try:
        uvicorn.Server(config).run([listener])
    finally:
        listener.close()
        site.close()


def open_listener(port: int | None) -> socket.socket:
    """A socket on that port; on the usual one, or the next that is free, when none was named."""
    if port is not None:
        return _bind_port(port)
    for number in range(PORT, PORT + _PORTS_TRIED):
        try:
            return _bind_port(number)
        except EverturnError:
            continue
    return _bind_port(0)


def _bind_port(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen(128)  # before anybody is told: who comes early waits instead of being turned away
    except OSError as error:
        listener.close()
        raise EverturnError(f"port {port} cannot be used: {error.strerror}; name another with --port") from error
    return listener
