"""An archive on PostgreSQL, as a team uses it: round trips and server time of a search, and its wall time over a slow network.

The archive is made up as in `latency`, with a million messages with --big, else a few. A proxy between client and server
counts round trips, which is every time the client speaks after the server, and adds latency. Server time is the CPU time of
the server process of the connection. `overlap@10` is the share of the first ten that the exact ranking, over every message that
matches, has among its first ten too; of equal scores any will do. SQLite's own, bounded ranking is measured in the same way.
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import parse_qs, urlsplit

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure, say
from benchmarks.latency import NOWHERE, million, queries
from benchmarks.processes import MB
from everturn.retrieval.index_query import build_index_query
from everturn.retrieval.query import parse_query
from everturn.retrieval.ranking import WEIGHTS, rank_candidates, rank_hits
from everturn.retrieval.search import search
from everturn.sources.contract import all_sources
from everturn.store.contract import Store, open_store

ROUND_TRIPS = 5
SERVER_MS = 60.0
SLOW_MS = 250.0
OVERLAP = 0.9
LATENCY = 0.020  # seconds of a round trip
_FEW = 10_000
_MANY = 1_000_000
_NOW = 1_790_000_000_000


class LatencyProxy:
    """Forwards connections to a server's socket, with a delay, and counts round trips."""

    def __init__(self, target: str) -> None:
        self.delay = 0.0
        self.round_trips = 0
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            spoken = threading.Event()  # the server has spoken since the client did
            spoken.set()
            threading.Thread(target=self._forward, args=(client, server, spoken, True), daemon=True).start()
            threading.Thread(target=self._forward, args=(server, client, spoken, False), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, spoken: threading.Event, asks: bool) -> None:
        while data := _received(source):
            if asks and spoken.is_set():
                self.round_trips += 1
                spoken.clear()
                time.sleep(self.delay)
            elif not asks:
                spoken.set()
            try:
                target.sendall(data)
            except OSError:
                break
        for end in (source, target):
            end.close()


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(1 << 16)
    except OSError:
        return b""


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Every query on PostgreSQL and, for comparison, on SQLite."""
    messages = _MANY if corpora.big else _FEW
    try:
        from tests.postgres_server import running

        with running() as server, _proxied(server) as (proxy, url):
            yield from _searches(corpora.folder, server, proxy, url, messages)
    except (ImportError, RuntimeError) as failure:
        yield Figure("team", None, note=str(failure))


@contextmanager
def _proxied(server: str) -> Iterator[tuple[LatencyProxy, str]]:
    folder = parse_qs(urlsplit(server).query)["host"][0]
    proxy = LatencyProxy(str(Path(folder) / ".s.PGSQL.5432"))
    try:
        yield (
            proxy,
            f"postgresql://postgres@127.0.0.1:{proxy.port}/postgres?sslmode=disable&gssencmode=disable&schema=team",
        )
    finally:
        proxy.close()


def _searches(folder: Path, server: str, proxy: LatencyProxy, url: str, messages: int) -> Iterator[Figure]:
    begun = time.process_time()
    size, words = million(f"{server}&schema=team", messages)
    where = f"{messages:,} messages, {size / MB:,.0f} MB of text"
    yield Figure(
        "client CPU to write the made-up archive", size / MB / (time.process_time() - begun), "MB/s", note=where
    )
    million(folder / "team.db", messages)
    texts = [text for text in queries(words) if text != NOWHERE]  # a typing error is corrected by further lookups
    with closing(open_store(url)) as store, closing(open_store(str(folder / "team.db"))) as reference:
        yield Figure(
            "size / text", store.sizes()["total"] / size, note=f"index {store.sizes()['index'] / size:.2f}; {where}"
        )
        yield from _measured(store, reference, proxy, texts, f"right after ingest, {where}", slow=False)
        store.scrub() if messages <= _FEW else None
        yield from _measured(store, reference, proxy, texts, where, slow=True)


def _measured(
    store: Store, reference: Store, proxy: LatencyProxy, texts: list[str], where: str, slow: bool
) -> Iterator[Figure]:
    trips, cpu, walls, same, usual = [], [], [], [], []
    backend = store.driver.one("SELECT pg_backend_pid()")[0]  # type: ignore[attr-defined]  # of PostgreSQL
    for text in texts:
        _found(store, text)  # plans and pages are warm then, as in a server that runs
        before, used = proxy.round_trips, _cpu_ms(backend)
        _found(store, text)
        trips.append(proxy.round_trips - before)
        cpu.append(_cpu_ms(backend) - used)
        scores = _exact_scores(reference, text)
        same.append(_overlap(store, text, scores))
        usual.append(_overlap(reference, text, scores))
        say(
            f"  {text[:40]:<42}{trips[-1]:>4} trips {cpu[-1]:>7.1f} CPU-ms  overlap {same[-1]:.1f}, SQLite {usual[-1]:.1f}"
        )
        if slow:
            proxy.delay, start = LATENCY, time.perf_counter()
            _found(store, text)
            walls.append((time.perf_counter() - start) * 1000)
            proxy.delay = 0.0
    note = f"{len(texts)} queries, {where}"
    yield Figure(
        "round trips of a search, most", max(trips), "", ROUND_TRIPS, note=f"middle {median(trips):.0f}; {note}"
    )
    yield Figure(
        "server CPU of a search, p95", quantiles(cpu, n=20)[-1], "ms", SERVER_MS, note=f"p50 {median(cpu):.1f}; {note}"
    )
    beside = f"SQLite {sum(usual) / len(usual):.2f}; {note}"
    yield Figure(
        "overlap@10 with the exact ranking, mean", sum(same) / len(same), "", OVERLAP, at_least=True, note=beside
    )
    if slow:
        bar = f"p50 {median(walls):.0f}; {LATENCY * 1000:.0f} ms a round trip; {note}"
        yield Figure("wall time of a search, p95", quantiles(walls, n=20)[-1], "ms", SLOW_MS, note=bar)


def _found(store: Store, text: str) -> None:
    search(store, all_sources(), text, limit=20, now=_NOW)


def _exact_scores(reference: Store, text: str) -> dict[tuple[int, int], float]:
    """Rank every message that matches. Sessions have the same numbers in both archives."""
    query = build_index_query(parse_query(text))
    hits = rank_hits(reference, reference.candidates(query), query, _NOW, WEIGHTS, sys.maxsize)
    return {(hit.session, hit.seq): hit.score for hit in hits}


def _overlap(store: Store, text: str, scores: dict[tuple[int, int], float]) -> float:
    first = rank_candidates(store, build_index_query(parse_query(text)), _NOW).hits[:10]
    least = sorted(scores.values(), reverse=True)[:10][-1:]
    good = sum(scores.get((hit.session, hit.seq), 0.0) >= least[0] * 0.998 for hit in first) if least else 0
    return good / min(10, len(scores)) if scores else 1.0


def _cpu_ms(process: int) -> float:
    """Return the CPU time of a server process in milliseconds."""
    return int(Path(f"/proc/{process}/schedstat").read_text("ascii").split()[0]) / 1e6
