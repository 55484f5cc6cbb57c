"""`everturn web`: a real process that says where it is, ends when it is told to, and has a word for every mistake."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from everturn.cli import main
from everturn.store.contract import open_store
from everturn.web.app import PORT, open_listener
from tests.capture.history import History


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "archive.db"
    open_store(str(path)).close()
    return path


@contextmanager
def running(db: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    command = [sys.executable, "-m", "everturn", "web", "--db", str(db), "--json", "--no-key", "--no-sync", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))
    assert process.stdout and process.stderr
    try:
        address = json.loads(process.stdout.readline())["items"][0]["address"]
        yield process, int(address.rpartition(":")[2].rstrip("/"))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        process.stdout.close()
        process.stderr.close()


def body(port: int, path: str) -> bytes:
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", path)
    found = connection.getresponse().read()
    connection.close()
    return found


def status(port: int, path: str = "/") -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=600)
    connection.request("GET", path)
    found = connection.getresponse().status
    connection.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_told_to_end_and_ends_clean(db: Path, number: signal.Signals) -> None:
    with running(db, "--port", "0") as (process, port):
        assert status(port) == 200
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


@pytest.mark.slow
def test_it_takes_in_what_agents_write_and_ends_while_pages_are_open(tmp_path: Path) -> None:
    history = History(tmp_path / "agent")
    history.write(history.turn("a live question", "yes"))
    env = {**os.environ, "CLAUDE_CONFIG_DIR": str(tmp_path / "agent")}
    command = [
        sys.executable,
        "-m",
        "everturn",
        "web",
        "--db",
        str(tmp_path / "a.db"),
        "--json",
        "--no-key",
        "--port",
        "0",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
    assert process.stdout and process.stderr
    try:
        address = urlsplit(json.loads(process.stdout.readline())["items"][0]["address"])
        connection = HTTPConnection("127.0.0.1", address.port or 0, timeout=60)
        connection.request("GET", "/events")
        events = connection.getresponse()
        while b"a live question" not in body(address.port or 0, "/sessions"):
            assert events.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0 and b"Traceback" not in process.stderr.read()
        connection.close()
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()
        process.stderr.close()


@pytest.mark.slow
def test_it_needs_the_key_that_it_prints(db: Path) -> None:
    command = [sys.executable, "-m", "everturn", "web", "--db", str(db), "--json", "--no-sync", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(os.environ))
    assert process.stdout is not None
    try:
        address = urlsplit(json.loads(process.stdout.readline())["items"][0]["address"])
        assert len(dict(parse_qsl(address.query))["key"]) >= 32
        assert (status(address.port or 0), status(address.port or 0, f"/?{address.query}")) == (403, 303)
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()


@pytest.mark.slow
def test_a_reader_that_stays_does_not_keep_it_from_ending(db: Path) -> None:
    with running(db, "--port", "0") as (process, port):
        connection = HTTPConnection("127.0.0.1", port, timeout=600)
        connection.request("GET", "/")
        connection.getresponse().read()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
        connection.close()


def test_a_port_that_is_taken_is_told(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with open_listener(0) as taken:
        port = taken.getsockname()[1]
        assert main(["web", "--no-sync", "--db", str(db), "--port", str(port)]) == 1
    said = capsys.readouterr().err
    assert f"port {port} cannot be used" in said and "--port" in said


def test_without_a_port_the_next_free_one_is_taken() -> None:
    with open_listener(None) as first, open_listener(None) as second:
        assert first.getsockname()[1] != second.getsockname()[1]
        assert first.getsockname()[0] == "127.0.0.1"
        assert first.getsockname()[1] >= PORT


def test_a_missing_archive_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["web", "--no-sync", "--db", str(tmp_path / "none.db")]) == 3
    assert "there is no archive" in capsys.readouterr().err


def test_a_missing_package_is_told(
    db: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["web", "--db", str(db)]) == 1
    assert "pip install 'everturn[web]'" in capsys.readouterr().err
