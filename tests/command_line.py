"""`everturn` in a process of its own, with its own words, environment and exit code: `run(("sync",), os.environ)`.

It is a new interpreter, as people start it. In `make test` (EVERTURN_TEST_QUICK) it is forked from a process that has
imported the command line already, which saves most of the time; pipes, environment, exit and death are real all the same.
Only a missing import would not be seen there: `make test-full` sees it, and so does the test of the wheel.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import NoReturn

import everturn
from everturn.text.lazy_pattern import _LazyPattern
from tests.quick import QUICK

HERE = Path(__file__).parents[1]

#: Too much to import for what is seldom run like this.
_LEFT_OUT = ("everturn.integrations", "everturn.mcp", "everturn.tui", "everturn.web")
_NUMBER = struct.Struct("!i")


def run(
    words: Sequence[str],
    env: Mapping[str, str],
    given: bytes = b"",
    cwd: Path | None = None,
    stdout: int = subprocess.PIPE,
    timeout: float = 600,
) -> subprocess.CompletedProcess[bytes]:
    """One command, to its end, with what is typed into it."""
    if QUICK:
        return _forking().run(words, env, given, cwd or Path.cwd(), stdout, timeout)
    return subprocess.run(
        [sys.executable, "-m", "everturn", *words],
        input=given, stdout=stdout, stderr=subprocess.PIPE, env=env, cwd=cwd, timeout=timeout, check=False,
    )  # fmt: skip


@cache
def _forking() -> _Forking:
    return _Forking()


class _Forking:
    """The process that forks, started once for each process of tests."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        paths = os.pathsep.join((str(HERE / "src"), str(HERE)))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.command_line", str(theirs.fileno())],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=[theirs.fileno()], start_new_session=True,
            env={**os.environ, "PYTHONPATH": paths, "PYTHONUTF8": "1", "PYTHONHASHSEED": "0"},
        )  # fmt: skip
        theirs.close()
        atexit.register(self._end)

    def _end(self) -> None:
        self._socket.close()
        self._process.wait()

    def run(
        self, words: Sequence[str], env: Mapping[str, str], given: bytes, cwd: Path, stdout: int, timeout: float
    ) -> subprocess.CompletedProcess[bytes]:
        stdin, typing = os.pipe()
        said, out = os.pipe() if stdout == subprocess.PIPE else (-1, os.dup(stdout))
        complained, err = os.pipe()
        request = json.dumps({"words": [*words], "env": {**env}, "cwd": str(cwd)}).encode()
        socket.send_fds(self._socket, [_NUMBER.pack(len(request))], [stdin, out, err])
        self._socket.sendall(request)
        for theirs in (stdin, out, err):
            os.close(theirs)
        with ThreadPoolExecutor(3) as pool:
            pool.submit(_write, typing, given)
            wholes = [pool.submit(_read, pipe) for pipe in (said, complained)]
            code = self._wait(words, timeout)
        return subprocess.CompletedProcess(words, code, *(whole.result() for whole in wholes))

    def _wait(self, words: Sequence[str], timeout: float) -> int:
        process = _receive(self._socket)
        self._socket.settimeout(timeout)
        try:
            return _receive(self._socket)
        except TimeoutError:
            os.kill(process, signal.SIGKILL)
            self._socket.settimeout(None)
            _receive(self._socket)
            raise subprocess.TimeoutExpired(list(words), timeout) from None
        finally:
            self._socket.settimeout(None)


def _write(pipe: int, given: bytes) -> None:
    try:
        with open(pipe, "wb") as file:
            file.write(given)
    except BrokenPipeError:
        pass  # it does not want to hear any more


def _read(pipe: int) -> bytes:
    if pipe < 0:
        return b""
    with open(pipe, "rb") as file:
        return file.read()


def _receive(connection: socket.socket) -> int:
    number: int
    (number,) = _NUMBER.unpack(connection.recv(_NUMBER.size, socket.MSG_WAITALL))
    return number


# the process that forks -----------------------------------------------------------------------------------------------
def _serve(connection: socket.socket) -> None:
    """Fork for every request. Only the forked processes come back from here, as what was asked for."""
    _import_everything()
    while True:
        header, pipes, _, _ = socket.recv_fds(connection, _NUMBER.size, 3)
        if not header:
            sys.exit(0)
        (length,) = _NUMBER.unpack(header)
        request = connection.recv(length, socket.MSG_WAITALL)
        process = os.fork()
        if process == 0:
            connection.close()
            _become(pipes, **json.loads(request))
            return
        for pipe in pipes:
            os.close(pipe)
        connection.sendall(_NUMBER.pack(process))
        _, status = os.waitpid(process, 0)
        connection.sendall(_NUMBER.pack(os.waitstatus_to_exitcode(status)))


def _import_everything() -> None:
    for found in pkgutil.walk_packages(everturn.__path__, "everturn."):
        if not found.name.startswith(_LEFT_OUT) and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    for name in ("h11", "httpcore2", "httpx2", "re2", "truststore"):
        importlib.import_module(name)
    for module in [module for name, module in sys.modules.items() if name.startswith("everturn.")]:
        for pattern in vars(module).values():
            if isinstance(pattern, _LazyPattern):
                re.compile(*pattern._arguments)  # which keeps it
    gc.freeze()


def _become(pipes: Sequence[int], words: Sequence[str], env: Mapping[str, str], cwd: str) -> None:
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    sys.stdin = os.fdopen(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    sys.argv[:] = [str(Path(everturn.__file__).with_name("__main__.py")), *words]


def _leave(code: int) -> NoReturn:
    """End as an interpreter does, except that memory is left to the system: clearing what is shared copies it first."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        sys.exit(code)  # tells what the interpreter tells then
    os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    from everturn.cli import main

    _leave(main())
