"""Our server over pipes behind a small HTTP face, for the conformance suite, which speaks nothing else.

Each message is handed on as it is and the answer to it handed back: what the suite judges is our own server.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.mcp.pipes import Pipes


@contextmanager
def bridged(db: Path) -> Iterator[int]:
    """The port of the face."""
    lock = threading.Lock()

    class Face(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                pipes.send(message)
                body = json.dumps(pipes.read()).encode() if "id" in message and "method" in message else b""
            self.send_response(200 if body else 202)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.send_error(405)

        do_DELETE = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    with Pipes(db) as pipes, ThreadingHTTPServer(("127.0.0.1", 0), Face) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
