"""The protocol over two pipes: one line is one message.

Three promises to the client. A ping or a list is answered at once, even while a tool runs: the reader answers what needs no
archive, and one worker, which alone reads the archive, does the rest in order. A request cancelled in time is not run and
never answered. No line ends the server, however long or broken; the end of the input does, after all earlier requests were
answered.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, BinaryIO

from everturn.mcp import rpc
from everturn.mcp.rpc import Id, RpcError, RpcRequest
from everturn.mcp.server import BATCHING, McpServer, Peer

#: Bytes of one message. Requests are short; a longer one is a mistake or an attack.
LONGEST = 4 << 20

_GRACE = 1.0  # seconds a running call gets when the server is stopped

Reply = Callable[[dict[str, Any] | None], None]


class ServerStopped(BaseException):
    """Raised into the reader by a signal, to stop the server now."""


class _PendingRequest:
    def __init__(self, request: RpcRequest, reply: Reply) -> None:
        self.request, self.reply, self.cancelled = request, reply, False


class Server:
    """One client at the other end of two pipes. `log` takes a line for people."""

    def __init__(self, offers: McpServer, lines: BinaryIO, out: BinaryIO, log: Callable[[str], None]) -> None:
        self._offers, self._lines, self._out, self._log = offers, lines, out, log
        self._peer = Peer()
        self._jobs: SimpleQueue[_PendingRequest | None] = SimpleQueue()
        self._pending: dict[Id, _PendingRequest] = {}
        self._writing = threading.Lock()
        self._is_gone = False  # the client has closed its end

    def serve(self) -> None:
        """Answer until the input ends, or until ServerStopped is raised."""
        worker = threading.Thread(target=self._work, name="everturn-mcp", daemon=True)
        worker.start()
        try:
            for line in lines_of(self._lines):
                self._take(line)
                if self._is_gone:
                    break
            self._jobs.put(None)
            worker.join()
        except ServerStopped:  # also while waiting for the last answers
            for job in list(self._pending.values()):
                job.cancelled = True
            self._jobs.put(None)
            worker.join(_GRACE)

    # the reader -------------------------------------------------------------------------------------------------------
    def _take(self, line: bytes | None) -> None:
        """Handle one line; None is a line that was too long."""
        try:
            if line is None:
                raise RpcError(rpc.INVALID_REQUEST, f"a message has at most {LONGEST} bytes")
            message = rpc.decode(line)
            if not isinstance(message, list):
                self._take_one(message, self._write)
            elif self._peer.version != BATCHING:
                raise RpcError(rpc.INVALID_REQUEST, "one message per line: this version of the protocol has no batches")
            elif not message:
                raise RpcError(rpc.INVALID_REQUEST, "an empty batch")
            else:
                self._take_batch(message)
        except RpcError as refused:
            self._write(rpc.encode_failure(refused.id, refused))

    def _take_batch(self, messages: list[Any]) -> None:
        batch = _Batch(len(messages), self._write)
        for message in messages:
            try:
                self._take_one(message, batch.add, in_batch=True)
            except RpcError as refused:
                batch.add(rpc.encode_failure(refused.id, refused))

    def _take_one(self, message: Any, reply: Reply, in_batch: bool = False) -> None:
        request = rpc.read_request(message)
        if request is None:
            reply(None)
        elif request.is_notification:
            self._take_notification(request)
            reply(None)
        elif in_batch and request.method == "initialize":
            raise RpcError(rpc.INVALID_REQUEST, "initialize is not part of a batch", id=request.id)
        elif self._offers.is_at_hand(request.method):
            reply(self._answer(request))
        else:
            job = self._pending[request.id] = _PendingRequest(request, reply)
            self._jobs.put(job)

    def _take_notification(self, request: RpcRequest) -> None:
        if request.method == "notifications/cancelled":
            id = request.params.get("requestId")
            job = self._pending.get(id) if isinstance(id, str | int | float) else None
            if job is not None:
                job.cancelled = True

    # the worker -------------------------------------------------------------------------------------------------------
    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            answer = None if job.cancelled else self._answer(job.request)
            if self._pending.get(job.request.id) is job:
                del self._pending[job.request.id]
            job.reply(None if job.cancelled else answer)
        self._offers.close()

    # both -------------------------------------------------------------------------------------------------------------
    def _answer(self, request: RpcRequest) -> dict[str, Any]:
        try:
            return rpc.encode_success(request.id, self._offers.answer(self._peer, request.method, request.params))
        except RpcError as refused:
            return rpc.encode_failure(request.id, refused)
        except Exception as error:
            self._log(f"{request.method}: {error_place(error)}")
            internal = RpcError(rpc.INTERNAL_ERROR, f"internal error ({type(error).__name__}); the server continues")
            return rpc.encode_failure(request.id, internal)

    def _write(self, message: Any) -> None:
        if message is None:
            return
        line = rpc.encode(message)
        try:
            with self._writing:
                self._out.write(line)
                self._out.flush()
        except (OSError, ValueError):  # ValueError: closed
            self._is_gone = True


class _Batch:
    """Collects the answers to a batch and writes them as one."""

    def __init__(self, size: int, write: Callable[[Any], None]) -> None:
        self._left, self._write = size, write
        self._answers: list[dict[str, Any]] = []
        self._lock = threading.Lock()

    def add(self, answer: dict[str, Any] | None) -> None:
        """Add one answer; None for a message that gets none."""
        with self._lock:
            self._left -= 1
            if answer is not None:
                self._answers.append(answer)
            is_complete = not self._left and bool(self._answers)
        if is_complete:
            self._write(self._answers)


def lines_of(stream: BinaryIO) -> Iterator[bytes | None]:
    """Yield the lines that are not blank; None for one that is too long, which is never held in memory as a whole."""
    while line := stream.readline(LONGEST + 1):
        if len(line) > LONGEST and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(1 << 16)
            yield None
        elif line.strip():
            yield line


def error_place(error: BaseException) -> str:
    """Return the type and place of an error, without any content: this goes into logs of other programs."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {trace.tb_frame.f_code.co_name}:{trace.tb_lineno}" if trace else ""
    return f"{type(error).__name__}{place}"
