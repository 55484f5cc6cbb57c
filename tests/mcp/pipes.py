"""A client of raw lines: what the official one would never send can be sent with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import everturn

SRC = str(Path(everturn.__file__).parent.parent)
_PATIENCE = 600  # seconds until a server that does not answer is ended, so that a test fails instead of waiting


def environment(**more: str) -> dict[str, str]:
    """What a server is started with."""
    return {**os.environ, "PYTHONPATH": SRC, **more}


def command(db: Path, *words: str) -> list[str]:
    """The command line of a server."""
    return [sys.executable, "-m", "everturn", "mcp", "--db", str(db), *words]


class Pipes:
    """A server of our own at the other end of two pipes."""

    def __init__(self, db: Path, *words: str, **env: str) -> None:
        self.process = subprocess.Popen(
            command(db, *words),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**env),
        )  # fmt: skip
        assert self.process.stdin and self.process.stdout
        self._stdin, self._stdout = self.process.stdin, self.process.stdout
        self._ids = 0

    def __enter__(self) -> Pipes:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self._stdin, self._stdout, self.process.stderr):
            try:
                stream.close()  # type: ignore[union-attr]
            except BrokenPipeError:
                pass

    def send(self, message: Any) -> None:
        """One line: bytes as they are, anything else as JSON."""
        line = message if isinstance(message, bytes) else json.dumps(message).encode()
        self._stdin.write(line + b"\n")
        self._stdin.flush()

    def tell(self, method: str, **params: Any) -> None:
        """A notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def request(self, method: str, **params: Any) -> int:
        """Send a request and give its id."""
        self._ids += 1
        self.send({"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params})
        return self._ids

    def read(self) -> Any:
        """The next message of the server."""
        patience = threading.Timer(_PATIENCE, self.process.kill)
        patience.start()
        try:
            line = self._stdout.readline()
        finally:
            patience.cancel()
        assert line.endswith(b"\n"), "the server has ended"
        return json.loads(line)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and give what comes next, which is its answer when nothing else was asked."""
        id = self.request(method, **params)
        answer: dict[str, Any] = self.read()
        assert (answer["jsonrpc"], answer["id"]) == ("2.0", id)
        return answer

    def result(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a request that must succeed."""
        result: dict[str, Any] = self.ask(method, **params)["result"]
        return result

    def error(self, method: str, **params: Any) -> tuple[int, str]:
        """Number and words of a request that must fail."""
        error = self.ask(method, **params)["error"]
        return error["code"], error["message"]

    def call(self, name: str, **arguments: Any) -> tuple[str, bool]:
        """The text of a tool, and whether it is an error."""
        result = self.result("tools/call", name=name, arguments=arguments)
        return result["content"][0]["text"], result["isError"]

    def shake_hands(self, version: str = "2025-11-25") -> dict[str, Any]:
        """The handshake; what the server says of itself."""
        hello = self.result(
            "initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "test", "version": "1"}
        )
        self.tell("notifications/initialized")
        return hello

    def end(self) -> tuple[int, list[Any], str]:
        """Close the input: exit code, what was still answered, stderr."""
        out, err = self.process.communicate(timeout=_PATIENCE)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()
