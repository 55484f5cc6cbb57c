"""An archive on PostgreSQL, as a team uses it: round trips and server time of a search, and its wall time over a slow network.

The archive is made up as in `latency`, with a million messages with --big, else a few. A proxy between client and server
counts round trips, which is every time the client speaks after the server has answered what the client asked it to answer (a
Sync or a Flush of the protocol; rows that arrive while the client is still sending are no answer to wait for), and adds latency. Server time is the CPU time of
the server process of the connection. Then a corpus is taken in, and many laptops push to `everturn serve` while people search; some
pushes are cut off in the middle and repeated. `overlap@10` is the share of the first ten that the exact ranking, over every message that
matches, has among its first ten too; of equal scores any will do. SQLite's own, bounded ranking is measured in the same way. The last
figures are those of a person, limited by row-level security, as `everturn serve` asks for people.

`python -m benchmarks.team --messages 100000 --clients 100 --only pushes searches` chooses sizes and parts; `--alone` leaves out SQLite.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from hashlib import sha256
from pathlib import Path
from statistics import median, quantiles
from urllib.parse import parse_qs, urlsplit

import msgspec

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure, exact, say, show
from benchmarks.latency import million, queries
from benchmarks.processes import MB
from benchmarks.recall.archive import Archive
from benchmarks.recall.dialogues import locomo
from benchmarks.recall.measuring import asked, judged
from benchmarks.recall.metrics import mean
from everturn import clock
from everturn.capture.policy import Policy
from everturn.capture.sync import SyncJob, add_paths
from everturn.errors import EverturnError
from everturn.retrieval.query import build_index_query, parse_query
from everturn.retrieval.ranking import WEIGHTS, rank_candidates, rank_hits
from everturn.retrieval.search import search
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, Store, open_store
from everturn.store.people import People
from everturn.store.visibility import prepare_readers, restrict
from everturn.team.client import Login, TeamClient
from everturn.team.intake import FileName, Piece

ROUND_TRIPS = 5
SERVER_MS = 60.0
SLOW_MS = 250.0
OVERLAP = 0.9
LATENCY = 0.020  # seconds of a round trip
_FEW = 10_000
_MANY = 1_000_000
_NOW = 1_790_000_000_000
INGEST = 10.0  # MB per CPU second, client and server
SIZE = 0.60  # of the source
SEARCH_MS = 1000.0  # while others push
POINTS = 0.5  # between the engines
_ONE_IN = 8  # questions
_CLIENTS = 100
_FEW_CLIENTS = 20
_PIECES = 5  # of each client
_SEARCHERS = 20


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
            talk = _Talk()
            threading.Thread(target=self._forward, args=(client, server, talk, True), daemon=True).start()
            threading.Thread(target=self._forward, args=(server, client, talk, False), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, talk: _Talk, asks: bool) -> None:
        while data := _received(source):
            if asks and talk.asks(data):
                self.round_trips += 1
                time.sleep(self.delay)
            elif not asks:
                talk.answers(data)
            try:
                target.sendall(data)
            except OSError:
                break
        for end in (source, target):
            end.close()


class _Talk:
    """Who waits for whom on one connection."""

    def __init__(self) -> None:
        self._client, self._server = _Messages(startup=True), _Messages()
        self._wants_rows = False  # the client has sent a Flush since the last answer
        self._has_answer = True

    def asks(self, data: bytes) -> bool:
        """Take what the client sends; return whether it had waited for the server before."""
        had, self._has_answer = self._has_answer, False
        self._wants_rows = "H" in self._client.kinds(data) or (self._wants_rows and not had)
        return had

    def answers(self, data: bytes) -> None:
        """Take what the server sends: ReadyForQuery answers a Sync, anything a Flush; a startup has no other messages."""
        kinds = self._server.kinds(data)
        self._has_answer = self._has_answer or self._wants_rows or "Z" in kinds


class _Messages:
    """Splits one direction of a connection into the messages of PostgreSQL's protocol."""

    def __init__(self, startup: bool = False) -> None:
        self._rest = b""
        self._startup = startup  # the first message of a client has no kind

    def kinds(self, data: bytes) -> list[str]:
        """Return the kinds of the messages that are complete with these bytes."""
        self._rest += data
        found, at = [], 0
        while True:
            head = 0 if self._startup else 1
            size = int.from_bytes(self._rest[at + head : at + head + 4], "big")
            if len(self._rest) < at + head + 4 or len(self._rest) < at + head + size:
                break
            found.append(chr(self._rest[at]) if head else "")
            at, self._startup = at + head + size, False
        self._rest = self._rest[at:]
        return found


def _received(source: socket.socket) -> bytes:
    try:
        return source.recv(1 << 16)
    except OSError:
        return b""


PARTS = ("ingest", "dialogues", "pushes", "searches")


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Every query on PostgreSQL and, for comparison, on SQLite."""
    yield from sized_figures(corpora, *((_MANY, _CLIENTS) if corpora.big else (_FEW, _FEW_CLIENTS)), PARTS)


def sized_figures(
    corpora: Corpora, messages: int, clients: int, parts: Sequence[str], compared: bool = True
) -> Iterator[Figure]:
    """Yield the figures of some parts, with an archive of this size and so many laptops; unless `compared`, without SQLite."""
    try:
        from tests.postgres_server import running

        with running() as server, _proxied(server) as (proxy, url):
            if "ingest" in parts:
                yield from _taken_in(corpora, server)
            if "dialogues" in parts:
                yield from _dialogues(corpora, server)
            if "pushes" in parts:
                yield from _pushes(server, clients)
            if "searches" in parts:
                yield from _searches(corpora.folder if compared else None, server, proxy, url, messages)
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


def _searches(folder: Path | None, server: str, proxy: LatencyProxy, url: str, messages: int) -> Iterator[Figure]:
    begun = time.process_time()
    size, words = million(f"{server}&schema=team", messages)
    where = f"{messages:,} messages, {size / MB:,.0f} MB of text"
    yield Figure(
        "client CPU to write the made-up archive", size / MB / (time.process_time() - begun), "MB/s", note=where
    )
    if folder is not None:
        million(folder / "team.db", messages)
    with ExitStack() as stack:
        store = stack.enter_context(closing(open_store(url)))
        reference = stack.enter_context(closing(open_store(str(folder / "team.db")))) if folder is not None else None
        # A word that does not occur is taken for a typing error, which takes further lookups.
        texts = [
            text
            for text in queries(words)
            if _is_known(reference or store, [word for word in text.split() if word.isalpha()])
        ]
        yield Figure(
            "size / text", store.sizes()["total"] / size, note=f"index {store.sizes()['index'] / size:.2f}; {where}"
        )
        yield from _measured(store, reference, proxy, texts, f"right after ingest, {where}", slow=False)
        store.scrub() if messages <= _FEW else None
        yield from _measured(store, reference, proxy, texts, where, slow=True)
        _read_as_person(store)
        yield from _measured(
            store, reference, proxy, texts, f"for a person who may see everything, {where}", slow=False
        )


def _read_as_person(store: Store) -> None:
    """Give everything to one person and limit the connection to that person."""
    with store.write():
        store.set_setting("shared", "yes")
        People(store).add_person("ann", "member", _NOW)
        store.driver.run('UPDATE "source_file" SET "owner"=\'ann\'')  # type: ignore[attr-defined]  # of PostgreSQL
    prepare_readers(store)
    restrict(store, "ann")


def _measured(
    store: Store, reference: Store | None, proxy: LatencyProxy, texts: list[str], where: str, slow: bool
) -> Iterator[Figure]:
    trips, cpu, walls, same, usual = [], [], [], [], []
    backend = store.driver.one("SELECT pg_backend_pid()")[0]  # type: ignore[attr-defined]  # of PostgreSQL
    for text in texts:
        _found(store, text)  # plans and pages are warm then, as in a server that runs
        before, used = proxy.round_trips, _cpu_ms(backend)
        _found(store, text)
        trips.append(proxy.round_trips - before)
        cpu.append(_cpu_ms(backend) - used)
        line = f"  {text[:40]:<42}{trips[-1]:>4} trips {cpu[-1]:>7.1f} CPU-ms"
        if reference is not None:
            scores = _exact_scores(reference, text)
            same.append(_overlap(store, text, scores))
            usual.append(_overlap(reference, text, scores))
            line += f"  overlap {same[-1]:.1f}, SQLite {usual[-1]:.1f}"
        say(line)
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
    if same:
        beside = f"SQLite {sum(usual) / len(usual):.2f}; {note}"
        yield Figure(
            "overlap@10 with the exact ranking, mean", sum(same) / len(same), "", OVERLAP, at_least=True, note=beside
        )
    if slow:
        bar = f"p50 {median(walls):.0f}; {LATENCY * 1000:.0f} ms a round trip; {note}"
        yield Figure("wall time of a search, p95", quantiles(walls, n=20)[-1], "ms", SLOW_MS, note=bar)


def _is_known(reference: Store, words: list[str]) -> bool:
    return len(reference.count_words(words)) == len(words)


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


# --- ingest ---


def _taken_in(corpora: Corpora, server: str) -> Iterator[Figure]:
    """Take a corpus in directly: the CPU of this process and of its server process."""
    corpus = corpora.real or corpora.generated
    with closing(open_store(f"{server}&schema=taken")) as store:
        with store.write():
            store.set_setting("shared", "yes")  # as the one that `everturn serve` writes to
        backend = store.driver.one("SELECT pg_backend_pid()")[0]  # type: ignore[attr-defined]  # of PostgreSQL
        begun, used = time.process_time(), _cpu_ms(backend)
        places = SearchPlaces(home=corpus.place.folder / "home", env={}, platform=sys.platform)
        job = SyncJob(store, all_sources(), places, Policy(), "box", "ann", lambda: _NOW)
        add_paths(job, [corpus.place.claude])
        client, at_server = time.process_time() - begun, (_cpu_ms(backend) - used) / 1000
        size = sum(version.size for _, version in store.files())
        note = f"client {client:.1f} s, server {at_server:.1f} s; {corpus.name}, {size / MB:.0f} MB"
        yield Figure(
            "ingest, client and server together", size / MB / (client + at_server), "MB/CPU-s", INGEST, True, note
        )
        parts = store.sizes()
        note = f"raw {parts['raw'] / size:.2f}, index {parts['index'] / size:.2f}, rest {parts['rest'] / size:.2f}"
        yield Figure("archive / source, before VACUUM", parts["total"] / size, "", SIZE, note=note)


# --- the same answers on both engines ---


def _dialogues(corpora: Corpora, server: str) -> Iterator[Figure]:
    """Ask the questions of LoCoMo on both engines: all with --big, else one in eight."""
    folder = corpora.folder / "locomo"
    questions = locomo(folder)
    if questions is None:
        yield Figure("LoCoMo on PostgreSQL", None, note="the set is not beside the checkout")
        return
    questions = questions[:: 1 if corpora.big else _ONE_IN]
    scores = []
    for url in (f"{server}&schema=locomo", str(corpora.folder / "locomo.db")):
        with closing(Archive(open_store(url))) as archive:
            archive.take_in(folder)
            scores.append(asked(questions, archive.ask))
    for level, metric in (("session", "hit@1"), ("session", "hit@5"), ("message", "recall@5")):
        ours, reference = (100 * mean(judged(one, level)).values[metric] for one in scores)
        note = f"PostgreSQL {ours:.1f}, SQLite {reference:.1f}; {len(questions):,} questions"
        yield Figure(
            f"LoCoMo, {level} {metric}: difference of the engines", abs(ours - reference), "points", POINTS, note=note
        )


# --- pushes ---


def _pushes(server: str, clients: int) -> Iterator[Figure]:
    """Let many clients push at once, one in twenty cut off in the middle of a request, while people search."""
    url = f"{server}&schema=pushed"
    tokens = _team(url, clients)
    with _server(url) as address:
        ended, waits, errors = threading.Event(), [], []  # type: ignore[var-annotated]
        people = [
            threading.Thread(target=_searching, args=(address, token, ended, waits, errors))
            for token in tokens[:_SEARCHERS]
        ]
        pushing = [
            threading.Thread(target=_pushing, args=(address, token, number, errors))
            for number, token in enumerate(tokens)
        ]
        begun = time.perf_counter()
        for thread in [*people, *pushing]:
            thread.start()
        for thread in pushing:
            thread.join()
        took = time.perf_counter() - begun
        ended.set()
        for thread in people:
            thread.join()
    with closing(open_store(url)) as store:
        rows, _ = store.sessions(SessionFilter(), 10_000)
        held = {row.native_id: row.n_messages for row, _ in rows}
    wrong = [name for name in map(_session_name, range(clients)) if held.get(name) != _PIECES] + errors
    note = f"{clients} clients, {clients * _PIECES} pieces in {took:.0f} s, one in twenty cut off; {len(waits)} searches meanwhile"
    yield exact("pushes lost, doubled or failed", wrong, note)
    yield Figure(
        "search while others push, p95",
        quantiles(waits, n=20)[-1],
        "ms",
        SEARCH_MS,
        note=f"p50 {median(waits):.0f}; {note}",
    )


def _team(url: str, clients: int) -> list[str]:
    """Make a shared archive, its people and their tokens."""
    with closing(open_store(url)) as store:
        with store.write():
            store.set_setting("shared", "yes")
            people = People(store)
            for number in range(clients):
                people.add_person(f"person {number}", "member", clock.now())
            tokens = [
                people.new_token(f"person {number}", ("read", "push"), clock.now(), 1) for number in range(clients)
            ]
        prepare_readers(store)
    return tokens


@contextmanager
def _server(url: str) -> Iterator[str]:
    """`everturn serve` in a process of its own."""
    words = [sys.executable, "-m", "everturn", "serve", "--port", "0", "--db", url]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = next((found for line in process.stderr if (found := re.search(r"http://[0-9.:]+", line))), None)
            if said is None:
                raise RuntimeError("everturn serve did not start")
            yield said[0]
        finally:
            process.terminate()


def _session_name(number: int) -> str:
    return f"{number:08d}-0000-4000-8000-000000000000"


def _pushing(address: str, token: str, number: int, errors: list[str]) -> None:
    client, name, offset = TeamClient(Login(address, token)), _session_name(number), 0
    for turn in range(_PIECES):
        event = {
            "type": "user", "sessionId": name, "uuid": f"{number}-{turn}", "cwd": "/shop", "version": "2.1.50",
            "timestamp": f"2026-03-01T10:00:{turn:02d}.000Z",
            "message": {"role": "user", "content": f"walrus {number} asks question {turn} " + "about the shop " * 50},
        }  # fmt: skip
        data = json.dumps(event).encode() + b"\n"
        file = FileName("box", f"/{name}.jsonl")
        piece = Piece(
            file, "claude_code", "main", name, "", "full", b"head", 0, "", offset, offset + len(data),
            sha256(data).digest(), data,
        )  # fmt: skip
        body = msgspec.msgpack.encode(piece)
        if number % 20 == 0:
            _cut_off(address, token, body)
        try:
            client.post("/v1/push/piece", body)
        except EverturnError as error:
            errors.append(str(error))
            return
        offset += len(data)


def _cut_off(address: str, token: str, body: bytes) -> None:
    """Send half of a piece and hang up."""
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as connection:
        head = f"POST /v1/push/piece HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body[: len(body) // 2])


def _searching(address: str, token: str, ended: threading.Event, waits: list[float], errors: list[str]) -> None:
    client = TeamClient(Login(address, token))
    while not ended.is_set():
        begun = time.perf_counter()
        try:
            client.get("/v1/search", q="walrus question shop")
        except EverturnError as error:
            errors.append(str(error))
        waits.append((time.perf_counter() - begun) * 1000)
        ended.wait(0.5)


def main() -> int:
    """Run some parts at a chosen size."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.team")
    parser.add_argument("--messages", type=int, default=_FEW)
    parser.add_argument("--clients", type=int, default=_FEW_CLIENTS)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--alone", action="store_true", help="do not compare searches with SQLite")
    options = parser.parse_args()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="everturn-bench-") as folder:
        given = options.messages, options.clients, options.only, not options.alone
        for figure in sized_figures(Corpora(Path(folder)), *given):
            show(figure, as_json=False)
            missed += figure.verdict == "FAIL"
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
