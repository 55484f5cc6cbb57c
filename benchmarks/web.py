"""The pages: what each costs over ten thousand sessions and in one of ten thousand turns, and fifty readers while a sync writes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from importlib.util import find_spec
from statistics import median
from typing import NamedTuple

from benchmarks.browse import long_turn
from benchmarks.corpora import Corpora
from benchmarks.figures import Figure, exact
from benchmarks.ingest import taken_in
from benchmarks.processes import EVERTURN, MB, Failed, Place, cpu_of, peak_of, run
from everturn.sessions.lookup import resolve_session
from everturn.store.contract import SessionFilter, open_store

_SESSIONS = _TURNS = 10_000
_TIMES = 5
_CPU_MS, _BYTES_MB, _MEMORY_MB = 150, 1, 200
_READERS, _EACH = 50, 20
_LONG = "00000000-0000-4000-8000-000000010000"


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Page by page, then all at once."""
    if not sys.platform.startswith("linux") or find_spec("starlette") is None:
        yield Figure("web", None, note="needs Linux, to read what a running process used, and starlette")
        return
    corpus = corpora.sessions(_SESSIONS)
    if not corpus.costs:
        corpus.costs.append(taken_in(corpus))
    place = corpus.place
    number = _with_a_long_session(place)
    with _Server(place) as server:
        for name, path in _pages(number).items():
            yield from _page(server, name, path)
        yield Figure("web, peak memory", server.peak() / MB, "MB", _MEMORY_MB, note="after every page")
        yield from _load(server, place, number)
        yield Figure("web, peak memory under load", server.peak() / MB, "MB", _MEMORY_MB)
    yield from _real(corpora)


def _pages(number: int) -> dict[str, str]:
    return {
        "home": "/",
        "home, calendar": "/home/calendar?part=1",
        "home, what is safe": "/home/safety?part=1",
        "sessions": "/sessions",
        "sessions, by words": "/sessions?q=parser",
        "session, first turns": f"/s/{number}",
        "session, to the last turn": f"/s/{number}?turn={_TURNS}",
        "session, all turns as a strip": f"/s/{number}/map?part=1",
        "session, a message as captured": f"/s/{number}/m/{_TURNS}",
        "session, lineage": f"/s/{number}/lineage",
        "search, a word": "/search?q=parser&part=1",
        "search, three words": "/search?q=test+failed+error&part=1",
        "paths, tools": "/paths/tools?part=1",
        "paths, found": "/paths/found?part=1",
        "paths, struggles": "/paths/struggles?part=1",
        "paths, one tool": "/paths/tool?tool=Bash",
        "costs, total": "/costs/total?part=1",
        "costs, by model": "/costs/by?by=model&part=1",
        "health": "/health",
    }


def _real(corpora: Corpora) -> Iterator[Figure]:
    """Generated sessions are all alike; real ones have turns of a hundred calls and outputs without end."""
    corpus = corpora.real
    if corpus is None:
        yield Figure("web, real sessions", None, note=corpora.why_not_real)
        return
    if not corpus.costs:
        corpus.costs.append(taken_in(corpus))
    with closing(open_store(str(corpus.place.db))) as store:
        sessions = [session for session, _ in store.sessions(SessionFilter(), _SESSIONS)[0]]
    paths = [f"/s/{one.id}?after={at}" for one in sessions for at in range(0, max(one.n_turns, 1), 20)]
    with _Server(corpus.place) as server:
        server.timed(paths[0])  # what is imported for it is not part of the figure
        found = {path: server.timed(path) for path in paths}
        worst = max(found, key=lambda path: found[path].cpu_ms)
        cpu = min(found[worst].cpu_ms, *(server.timed(worst).cpu_ms for _ in range(_TIMES)))
    note = f"the most costly of {len(paths)} pages of {len(sessions)} sessions"
    yield Figure("web, real sessions", cpu, "CPU-ms", _CPU_MS, note=note)
    yield Figure("web, real sessions, size", max(one.size for one in found.values()) / MB, "MB", _BYTES_MB)


def _page(server: _Server, name: str, path: str) -> Iterator[Figure]:
    first = server.timed(path)
    times = [server.timed(path) for _ in range(_TIMES)]
    note = f"middle of {_TIMES}; the first time {first.cpu_ms:,.0f}"
    yield Figure(f"web {name}", median(one.cpu_ms for one in times), "CPU-ms", _CPU_MS, note=note)
    yield Figure(f"web {name}, size", first.size / MB, "MB", _BYTES_MB)


def _load(server: _Server, place: Place, number: int) -> Iterator[Figure]:
    """Readers go round the pages while one sync after the other takes in a session that grows."""
    paths = ["/sessions", f"/s/{number}?turn={_TURNS}", "/search?q=parser&part=1", "/", f"/s/{number}", "/api/sessions"]
    took: list[float] = []
    wrong: list[str] = []
    reading = threading.Event()
    reading.set()
    writer = threading.Thread(target=_write, args=(place, reading))
    writer.start()

    def read(reader: int) -> None:
        for turn in range(_EACH):
            path = paths[(reader + turn) % len(paths)]
            begun = time.perf_counter()
            try:
                status = server.get(path)[0]
            except OSError as error:
                status = repr(error)
            took.append(time.perf_counter() - begun)
            if status != 200:
                wrong.append(f"{path}: {status}")

    before = server.cpu()
    readers = [threading.Thread(target=read, args=(reader,)) for reader in range(_READERS)]
    for one in readers:
        one.start()
    for one in readers:
        one.join()
    spent = server.cpu() - before
    reading.clear()
    writer.join()
    note = f"{_READERS} readers, {len(took):,} pages, while syncs write"
    yield exact("web, errors under load", wrong, note)
    yield Figure(
        "web under load, a page", 1000 * spent / len(took), "CPU-ms", _CPU_MS, note="of the server, on average"
    )
    took.sort()
    for name, share in (("half within", 0.5), ("95 % within", 0.95), ("all within", 1.0)):
        yield Figure(
            f"web under load, {name}", 1000 * took[min(len(took) - 1, int(share * len(took)))], "ms", note=note
        )


def _write(place: Place, reading: threading.Event) -> None:
    path = place.claude / "projects" / "-home-ann-grows" / "00000000-0000-4000-8000-000000020000.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    turns = 0
    while reading.is_set():
        with path.open("ab") as file:
            file.writelines(long_turn(turns + more) for more in range(50))
        turns += 50
        run((*EVERTURN, "sync"), place.env)


def _with_a_long_session(place: Place) -> int:
    path = place.claude / "projects" / "-home-ann-long" / f"{_LONG}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.writelines(long_turn(number) for number in range(_TURNS))
    run((*EVERTURN, "sync"), place.env)
    with closing(open_store(str(place.db))) as store:
        return resolve_session(store, _LONG).id


class _Took(NamedTuple):
    cpu_ms: float
    size: int


class _Server:
    """The server in a process of its own."""

    def __init__(self, place: Place) -> None:
        command = [*EVERTURN, "web", "--port", "0", "--json", "--no-key"]
        self._process = subprocess.Popen(command, env=place.env, stdout=subprocess.PIPE)
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise Failed("the server did not start")
        self._port = int(json.loads(line)["items"][0]["address"].rpartition(":")[2].rstrip("/"))

    def __enter__(self) -> _Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(30)
        assert self._process.stdout
        self._process.stdout.close()

    def get(self, path: str) -> tuple[int | str, int]:
        """Status and bytes of an answer."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=120)
        with closing(connection):
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, len(answer.read())

    def timed(self, path: str) -> _Took:
        """What it takes of the processor. Raises Failed."""
        before = self.cpu()
        status, size = self.get(path)
        if status != 200:
            raise Failed(f"{path}: {status}")
        return _Took(1000 * (self.cpu() - before), size)

    def cpu(self) -> float:
        """Seconds of processor it has used so far."""
        return cpu_of(self._process.pid)

    def peak(self) -> int:
        """The most memory it has had."""
        return peak_of(self._process.pid)
