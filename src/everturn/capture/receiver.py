"""Receives sessions over HTTP on this machine, from programs that export them, and takes them into the archive.

It listens on the loopback interface only, and only while a person runs it. A request must name this host, and one that comes
from a page in a browser is refused. Everything is bounded: the size of a body, also when it is unpacked, the number of
requests at a time, the time that one may take, and the size of a conversation.

A request is answered when what it holds is in the archive. So nothing is lost when the receiver ends: the program that sent it
sends it again. The lines of each conversation are a file in a folder beside the archive while the receiver runs. A
conversation that goes on later begins with the bytes that the archive has of it.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import BoundedSemaphore, Event, Thread
from typing import Any

from everturn.capture.intake import SyncJob, SyncReport
from everturn.capture.sync import add_paths
from everturn.errors import EverturnError, UsageError
from everturn.sources.contract import Source, WireForm

HOST = "127.0.0.1"
LARGEST_BODY = 16 << 20
LARGEST_UNPACKED = 64 << 20
LARGEST_CONVERSATION = 128 << 20
MOST_AT_ONCE = 16
_TIMEOUT = 30  # seconds without a byte
_TICK = 0.2  # seconds: what arrives meanwhile is taken in together
_NAMES = (HOST, "localhost")


class _Refusal(Exception):
    """A request that is not taken, with the status of the answer and one sentence."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class _Delivery:
    """What one request holds, from the thread that received it to the one that writes, and back."""

    def __init__(self, source: Source, lines: Sequence[tuple[str, bytes]]) -> None:
        self.source, self.lines = source, lines
        self.refusal: _Refusal | None = None
        self.is_done = Event()


def receive(
    job: SyncJob, folder: Path, port: int, ready: Callable[[str], None], tell: Callable[[SyncReport], None], stop: Event
) -> None:
    """Receive until `stop` is set. `tell` gets the report of everything that was taken in. Raises UsageError."""
    wires = {source.wire.path: source for source in job.sources.values() if source.wire is not None}
    deliveries: Queue[_Delivery] = Queue()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _empty(folder)
    try:
        server = _Server((HOST, port), deliveries, wires)
    except OSError as failure:
        raise UsageError(f"port {port} cannot be used: {failure.strerror}; choose another one with --port") from None
    server.start()
    try:
        ready(f"http://{HOST}:{server.server_port}")
        while not stop.is_set():
            if waiting := _wait_for(deliveries):
                _take_in(job, folder, waiting, tell)
    finally:
        server.stop()
        _empty(folder)
        with suppress(OSError):
            folder.rmdir()


def _wait_for(deliveries: Queue[_Delivery]) -> list[_Delivery]:
    try:
        found = [deliveries.get(timeout=_TICK)]
    except Empty:
        return []
    while not deliveries.empty():
        found.append(deliveries.get())
    return found


def _take_in(job: SyncJob, folder: Path, deliveries: Sequence[_Delivery], tell: Callable[[SyncReport], None]) -> None:
    """Write what was received and answer. A failure is an answer too: the sender tries again."""
    by_source: dict[str, dict[Path, None]] = {}
    for one in deliveries:
        try:
            paths = [_append(job, folder, one.source, name, line) for name, line in one.lines]
            by_source.setdefault(one.source.name, {}).update(dict.fromkeys(paths))
        except _Refusal as refusal:
            one.refusal = refusal
    try:
        for name, grown in by_source.items():
            if grown:
                tell(add_paths(job, list(grown), name))
    except (EverturnError, OSError) as failure:
        for one in deliveries:
            one.refusal = one.refusal or _Refusal(503, str(failure))
    finally:
        for one in deliveries:
            one.is_done.set()


def _append(job: SyncJob, folder: Path, source: Source, conversation: str, line: bytes) -> Path:
    """Append a line to the file of a conversation, which begins with what the archive has of it."""
    path = folder / f"{source.name}-{sha256(conversation.encode('utf-8', 'replace')).hexdigest()[:32]}.jsonl"
    if not path.exists():
        row = job.store.file(job.machine, str(path))
        path.touch(mode=0o600)
        if row is not None and row[1].mode == "full":
            path.write_bytes(job.store.read_raw(row[1].id, 0, row[1].size))
    if path.stat().st_size + len(line) > LARGEST_CONVERSATION:
        raise _Refusal(413, f"a conversation of more than {LARGEST_CONVERSATION >> 20} MB is not received")
    with path.open("ab") as file:
        file.write(line)
    return path


def _empty(folder: Path) -> None:
    """Delete the files here: what was answered is in the archive, and what was not will be sent again."""
    for path in folder.glob("*.jsonl"):
        path.unlink(missing_ok=True)


# --- HTTP ---
class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], deliveries: Queue[_Delivery], wires: Mapping[str, Source]) -> None:
        super().__init__(address, _Handler)
        self.deliveries, self.wires = deliveries, wires
        self.room = BoundedSemaphore(MOST_AT_ONCE)
        self.is_ending = Event()

    def start(self) -> None:
        Thread(target=self.serve_forever, kwargs={"poll_interval": _TICK}, daemon=True).start()

    def stop(self) -> None:
        self.is_ending.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that is gone is no problem of ours."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = _TIMEOUT
    server_version, sys_version = "everturn", ""

    def do_POST(self) -> None:
        try:
            self._check_origin()
            source = self.server.wires.get(self.path.partition("?")[0])
            if source is None or source.wire is None:
                raise _Refusal(404, f"sessions are received at {', '.join(self.server.wires)}")
            media_type = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            if media_type not in (source.wire.media_type, "application/json"):
                raise _Refusal(415, f"send {source.wire.media_type} or application/json")
            self._deliver(source, source.wire, media_type)
            self._answer(200, media_type, b"{}" if media_type == "application/json" else b"")
        except _Refusal as refusal:
            self.close_connection = True
            self._answer(refusal.status, "text/plain; charset=utf-8", f"{refusal}\n".encode("utf-8", "replace"))

    def _check_origin(self) -> None:
        names = {f"{name}:{self.server.server_port}" for name in _NAMES}
        if self.headers.get("Host", "").lower() not in names:
            raise _Refusal(421, "this receiver answers to 127.0.0.1 and localhost only")
        if self.headers.get("Origin"):
            raise _Refusal(403, "pages in a browser may not send sessions")

    def _deliver(self, source: Source, wire: WireForm, media_type: str) -> None:
        """Hand over what the request holds, and wait until it is in the archive."""
        if not self.server.room.acquire(blocking=False):
            raise _Refusal(503, "too many requests at a time; send it again")
        try:
            one = _Delivery(source, self._split(wire, media_type))
            if not one.lines:
                return
            self.server.deliveries.put(one)
            while not one.is_done.wait(_TICK):
                if self.server.is_ending.is_set():
                    raise _Refusal(503, "the receiver ends; send it again")
            if one.refusal is not None:
                raise one.refusal
        finally:
            self.server.room.release()

    def _split(self, wire: WireForm, media_type: str) -> list[tuple[str, bytes]]:
        try:
            return list(wire.split(self._body(), media_type))
        except ValueError as failure:
            raise _Refusal(400, str(failure)) from None

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            raise _Refusal(411, "the length of the body is missing")
        if len(length) > len(str(LARGEST_BODY)) or int(length) > LARGEST_BODY:
            raise _Refusal(413, f"a body has at most {LARGEST_BODY >> 20} MB; send fewer spans at a time")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise _Refusal(400, "the body is not whole")
        coding = self.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in ("gzip", "identity"):
            raise _Refusal(415, "only gzip is unpacked")
        return _unpack(body) if coding == "gzip" else body

    def _answer(self, status: int, media_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        if status == 503:
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: below the surfaces nothing prints."""


def _unpack(body: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(body, LARGEST_UNPACKED)
    except zlib.error:
        raise _Refusal(400, "the body is not gzip") from None
    if unpacker.unconsumed_tail or not unpacker.eof:
        raise _Refusal(413 if unpacker.unconsumed_tail else 400, "the body is too large or not whole")
    return data
