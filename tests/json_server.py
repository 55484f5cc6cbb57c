"""A real server on this machine that answers every POST with JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class JsonServer(ThreadingHTTPServer):
    """`reply` says how a request is answered."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def reply(self, path: str, key: str | None, asked: Any) -> tuple[int, Any]:
        """Return the status and the body, as bytes or as a value; `key` is the Authorization header."""
        raise NotImplementedError

    @contextmanager
    def running(self) -> Iterator[None]:
        """Serve until the end of the block."""
        with self:
            thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            yield
            self.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: JsonServer

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, body = self.server.reply(self.path, self.headers["Authorization"], asked)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        with suppress(OSError):  # nobody waits any more
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass
