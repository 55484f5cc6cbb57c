"""Over HTTP: this machine only, nobody's browser, and a clear word where the SDK is missing."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.mcp.http_server import over_http
from tests.mcp.pipes import command, environment

HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip


@pytest.fixture
def server(db: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with over_http(db) as made:
        yield made


def post(port: int, **headers: str) -> int:
    """The status of a handshake with these headers."""
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("POST", "/mcp", json.dumps(HELLO), usual | headers)
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.slow
@pytest.mark.needs("module:mcp")
def test_only_requests_that_mean_this_machine_are_answered(server: tuple[subprocess.Popen[bytes], int]) -> None:
    _, port = server
    assert post(port) == 200
    assert post(port, Host=f"localhost:{port}") == 200
    assert post(port, Origin=f"http://127.0.0.1:{port}") == 200
    assert post(port, Host=f"evil.example:{port}") == 421
    assert post(port, Host=f"127.0.0.1.evil.example:{port}") == 421
    assert post(port, Origin="http://evil.example") == 403
    assert post(port, Origin="null") == 403
    assert post(port, Origin="http://localhost:1") == 403  # another server on this machine is somebody else
    # A server on all addresses would also answer here.
    with pytest.raises(OSError), socket.create_connection(("127.0.0.2", port), 5):
        pass


@pytest.mark.slow
@pytest.mark.needs("module:mcp")
def test_told_to_stop_it_ends_without_complaint(server: tuple[subprocess.Popen[bytes], int]) -> None:
    process, port = server
    assert post(port) == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert process.stderr and process.stderr.read() == b""


@pytest.mark.needs("module:mcp")
def test_a_port_that_is_taken_is_told(db: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            command(db, "--http", "--port", port), env=environment(), capture_output=True, timeout=600, check=False
        )
    assert done.returncode == 1
    assert f"port {port} cannot be used" in done.stderr.decode() and "--port" in done.stderr.decode()


def test_without_the_sdk_it_says_what_to_install(db: Path) -> None:
    program = (
        "import sys\nsys.modules['mcp'] = None\nfrom everturn.cli import main\n"
        f"sys.exit(main(['mcp', '--http', '--db', {str(db)!r}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment(), capture_output=True, timeout=600, check=False
    )
    assert done.returncode == 1
    assert b"pip install 'everturn[mcp]'" in done.stderr and b"Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.needs("module:mcp")
def test_it_needs_the_key_that_it_prints_and_keeps_it(db: Path) -> None:
    keys = set()
    for _ in range(2):
        with over_http(db, "--session", "") as (_, port):
            key = (Path(os.environ["EVERTURN_HOME"]) / "state" / "mcp-key").read_text().strip()
            keys.add(key)
            assert post(port) == 401
            assert post(port, Authorization="Bearer wrong") == 401
            assert post(port, Authorization=f"Bearer {key}") == 200
    assert len(keys) == 1
