"""Models over HTTP: one request, its retries, and an answer that is read as it arrives.

Promises: requests are encrypted, except to this machine; redirects are not followed; only the configured proxy is used; an
answer has a size and a time limit. Transient failures (429, 529, 5xx, a lost connection) are retried with growing, jittered
pauses, as long as nothing was handed out or the caller asked for the whole reply. A stream that breaks off ends as `cut`
with the part that arrived. The key is looked up when needed and is in no error, log or repr. An address with a user name
or password is refused, since addresses are shown and logged.
"""

from __future__ import annotations

import itertools
import json
import random
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from msgspec import Struct, structs

from everturn.errors import BadAnswer, BadConfig, ModelBusy, ModelError, ModelRefused, ModelUnreachable
from everturn.llm.history_rules import certain_violations
from everturn.llm.http_answer import (
    ConnectionLost,
    RetryableFailure,
    ServerEventStream,
    check_answer,
    refusal_error,
    retry_pause,
)
from everturn.llm.protocol import (
    Delta,
    GarbledAnswer,
    ModelRequest,
    Reply,
    ReplyAssembly,
    ReplyTokens,
    StreamFailed,
    Wire,
    decode_json,
    reply_deltas,
    sum_usage,
)


def model_url(name: str, base: str, path: str) -> str:
    """Append `path` to a base address and keep its query. Raise `BadConfig`."""
    key = f"models.{name}.base_url"
    try:
        parts = urlsplit(base)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise BadConfig(key, "is not a valid address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise BadConfig(key, "must be an address that begins with https://")
    if "@" in parts.netloc:
        raise BadConfig(key, "must not contain a password; use key_env or keyring")
    if parts.scheme == "http" and not is_loopback(host):
        raise BadConfig(key, f"{host} is not this machine, so the address must begin with https://")
    return urlunsplit(SplitResult(parts.scheme, parts.netloc, join_address(parts.path, path), parts.query, ""))


def join_address(base: str, path: str) -> str:
    """Join two paths. A version in both (`…/v1` and `/v1/…`) appears once."""
    base = base.rstrip("/")
    first = "/" + path.split("/")[1]
    return base + (path.removeprefix(first) if base.endswith(first) and path.count("/") > 1 else path)


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


Key = Callable[[], str]
_HEADERS = {"accept-encoding": "identity", "content-type": "application/json", "user-agent": "everturn"}


class Patience(Struct, frozen=True):
    """Timeouts in seconds, and the number of attempts."""

    connect: float = 10.0
    read: float = 120.0  # between two parts of an answer
    total: float = 600.0  # pauses and retries included
    tries: int = 4
    pause: float = 0.5  # before the first retry; doubles each time
    longest_pause: float = 60.0  # a server that asks for more ends the retries


class Endpoint(Struct, frozen=True):
    """The address of a model and the options of its requests."""

    base: str
    patience: Patience = Patience()
    headers: dict[str, str] = {}
    extra: dict[str, Any] = {}  # members of every request
    proxy: str = ""
    window: int = 0
    max_tokens: int = 0
    is_streamed: bool = True  # some servers cannot stream
    bound: bool = False  # the provider refuses its own answers after a changed history
    most_bytes: int = 64 << 20  # of one answer


class HttpBackend:
    """A `Backend` over HTTP. `key` returns the key or ""."""

    takes_tools = True
    adds_bodies = True  # the messages of a history are those of its parts, one after the other

    def __init__(
        self,
        name: str,
        model: str,
        wire: Wire,
        endpoint: Endpoint,
        key: Key = str,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.name, self.model = name, model
        self.window, self.max_tokens, self.wire = endpoint.window, endpoint.max_tokens, wire.WIRE
        self.bound = endpoint.bound
        self._wire, self._endpoint, self._key, self._sleep = wire, endpoint, key, sleep
        self._url = model_url(name, endpoint.base, wire.PATH)

    def stream(self, request: ModelRequest) -> HttpStream:
        """See `Backend`. Deltas that were handed out are not requested again."""
        connection = OpenConnection()
        return HttpStream(self._deltas(request, False, connection), connection)

    def ask(self, request: ModelRequest) -> Reply:
        """See `Backend`. A stream that broke off is retried; only the last attempt returns a cut reply."""
        for delta in self._deltas(request, True, OpenConnection()):
            if delta.reply is not None:
                return delta.reply
        raise BadAnswer(self.name, "the answer is incomplete")

    def body(self, request: ModelRequest) -> dict[str, Any]:
        return self._wire.body(self._fill_request(request), self._endpoint.is_streamed)

    def _deltas(self, request: ModelRequest, whole: bool, connection: OpenConnection) -> Generator[Delta, None, None]:
        patience = self._endpoint.patience
        ends = time.monotonic() + patience.total
        lost = ReplyTokens()  # usage of broken attempts
        for number in range(1, patience.tries + 1):
            try:
                for delta in self._try_once(request, ends, connection):
                    if delta.reply is None:
                        yield delta
                        continue
                    used = sum_usage([lost, delta.reply.usage], delta.reply.usage.source)
                    reply = structs.replace(delta.reply, tries=number, usage=used)
                    if reply.stop != "cut" or not whole:
                        yield Delta("end", reply=reply)
                        return
                    lost = reply.usage
                    raise RetryableFailure(ModelUnreachable(self.name, "the answer was cut off"), cut=reply)
            except RetryableFailure as failed_try:
                wait = None if connection.is_aborted else retry_wait(patience, failed_try.after, number, ends)
                if wait is None:
                    yield from _give_up(failed_try, number)
                    return
                self._sleep(wait)
            except ModelError as error:
                error.tries = number
                raise

    def _try_once(self, request: ModelRequest, ends: float, connection: OpenConnection) -> Iterator[Delta]:
        """Make one attempt. Raise `RetryableFailure` only if nothing was handed out."""
        given = False
        assembly = self._wire.assembly()
        try:
            for delta in self._send(request, assembly, ends, connection):
                given = True
                yield delta
        except ConnectionLost as lost:
            if not given and not assembly.has_begun:
                raise lost.as_error(self.name) from None
            yield Delta("end", reply=structs.replace(assembly.reply(), stop="cut"))
        except StreamFailed as failed:
            error = refusal_error(self.name, 0, failed.failure, self._key())
            if failed.failure.passes and given:
                yield Delta("end", reply=structs.replace(assembly.reply(), stop="cut"))
            elif failed.failure.passes:
                raise RetryableFailure(ModelBusy(self.name, error.why)) from None
            else:
                raise error from None
        except GarbledAnswer as garbled:
            raise BadAnswer(self.name, f"the answer cannot be read: {garbled}") from None

    def _send(
        self, request: ModelRequest, assembly: ReplyAssembly, ends: float, connection: OpenConnection
    ) -> Iterator[Delta]:
        sent = self.body(request)
        for broken in certain_violations(self._wire.WIRE, sent):
            raise ModelRefused(self.name, f"the server would reject this request: {broken.where}: {broken.sentence}")
        body = json.dumps(sent, ensure_ascii=False).encode("utf-8", "replace")
        with (
            open_client(self.name, self._url, self._endpoint.patience, ends, self._endpoint.proxy) as client,
            client.stream(
                "POST", self._url, content=body, headers=self._headers(), extensions={"trace": connection.watch}
            ) as response,
        ):
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != 200:
                self._raise_refusal(response, ends)
            check_answer(self.name, kind, response.headers.get("content-encoding", ""))
            chunks = self._chunks(response, ends)
            if kind == "text/event-stream":
                yield from self._events(chunks, assembly)
            else:
                yield from reply_deltas(self._wire.read(decode_json(b"".join(chunks))))

    def _chunks(self, response: Any, ends: float) -> Iterator[bytes]:
        return read_chunks(response, self._endpoint.most_bytes, self._endpoint.patience, ends)

    def _fill_request(self, request: ModelRequest) -> ModelRequest:
        most = min(request.max_tokens, self.max_tokens or request.max_tokens)
        extra = {**self._endpoint.extra, **request.extra}
        return structs.replace(request, model=request.model or self.model, max_tokens=most, extra=extra)

    def _events(self, chunks: Iterator[bytes], assembly: ReplyAssembly) -> Iterator[Delta]:
        events = ServerEventStream()
        for chunk in chunks:
            for data in events.feed(chunk):
                yield from assembly.feed(data)
            if assembly.is_done:
                break
        else:
            yield from _last_deltas(events, assembly)
            if not assembly.has_begun and not assembly.is_done:
                raise ConnectionLost("the answer is empty", kind=BadAnswer)
        yield Delta("end", reply=assembly.reply())

    def _raise_refusal(self, response: Any, ends: float) -> None:
        """Raise the error of a status other than 200."""
        try:
            failure = self._wire.failure(decode_json(b"".join(self._chunks(response, ends))))
        except (GarbledAnswer, ConnectionLost):
            failure = None
        status = response.status_code
        error = refusal_error(self.name, status, failure, self._key())
        if is_transient(status) and not isinstance(error, ModelRefused):
            raise RetryableFailure(error, retry_pause(response.headers))
        raise error

    def _headers(self) -> dict[str, str]:
        """Return the headers. A line end around the key, common in files and keyrings, is dropped."""
        key = self._key().strip()
        if not key.isascii() or not key.isprintable():
            raise ModelRefused(self.name, "the API key contains a character that cannot be sent")
        accepted = {"accept": "text/event-stream, application/json"}
        return {**accepted, **_HEADERS, **self._wire.headers(key), **self._endpoint.headers}


class OpenConnection:
    """The connection of a running request. It is the only part of a request that another thread can end."""

    def __init__(self) -> None:
        self.is_aborted = False
        self._socket: Any = None

    def watch(self, event: str, info: Mapping[str, Any]) -> None:
        """Note the socket when the HTTP library has opened it. Called by that library."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._socket = info["return_value"].get_extra_info("socket")
            if self.is_aborted:
                self.abort()

    def abort(self) -> None:
        """End the request: whoever reads or writes gets an error at once."""
        self.is_aborted = True
        if self._socket is not None:
            with suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


class HttpStream:
    """A streamed reply. `close` belongs to the thread that reads; `abort` stops the request from any thread."""

    def __init__(self, deltas: Generator[Delta, None, None], connection: OpenConnection) -> None:
        self._deltas, self._connection = deltas, connection

    def __iter__(self) -> Iterator[Delta]:
        return self._deltas

    def __next__(self) -> Delta:
        return next(self._deltas)

    def close(self) -> None:
        self._deltas.close()

    def abort(self) -> None:
        self._connection.abort()


# --- shared by every request over HTTP ---
def post(name: str, url: str, body: bytes, headers: dict[str, str], patience: Patience) -> tuple[int, bytes]:
    """Post a body and return status and answer. Retry transient failures. Raise `ConnectionLost` or `GarbledAnswer`."""
    ends, was_open = time.monotonic() + patience.total, False
    for number in itertools.count(1):
        try:
            with (
                open_client(name, url, patience, ends) as client,
                client.stream("POST", url, content=body, headers={**_HEADERS, **headers}) as response,
            ):
                answer = b"".join(read_chunks(response, Endpoint("").most_bytes, patience, ends))
            pause = retry_pause(response.headers)
            wait = retry_wait(patience, pause, number, ends) if is_transient(response.status_code) else None
            if wait is None:
                return response.status_code, answer
        except ConnectionLost as lost:
            lost.was_open = was_open = was_open or lost.was_open
            wait = retry_wait(patience, None, number, ends) if lost.again else None
            if wait is None:
                raise
        time.sleep(wait)
    raise AssertionError  # `count` has no end


@contextmanager
def open_client(name: str, url: str, patience: Patience, ends: float, proxy: str = "") -> Iterator[Any]:
    """Yield a client of the HTTP library that uses no proxy but ours.

    Its connection errors become `ConnectionLost`: their own messages may name the address.
    """
    http = _library(name)
    left = max(0.001, ends - time.monotonic())
    timeout = http.Timeout(min(patience.read, left), connect=min(patience.connect, left))
    verify = _trusted_certificates() if url.startswith("https:") or proxy else False
    try:
        with http.Client(timeout=timeout, trust_env=False, proxy=proxy or None, verify=verify) as client:
            yield client
    except http.InvalidURL:
        raise ModelRefused(name, "the address contains a character that cannot be sent") from None
    except http.ConnectTimeout:
        raise ConnectionLost("the connection timed out", was_open=False) from None
    except http.TimeoutException:
        raise ConnectionLost("the request timed out", again=False) from None
    except (http.ConnectError, http.ProxyError):
        raise ConnectionLost("cannot connect", was_open=False) from None
    except http.TransportError:
        raise ConnectionLost("the connection was lost") from None


def read_chunks(response: Any, most_bytes: int, patience: Patience, ends: float) -> Iterator[bytes]:
    """Yield the bytes of an answer within its limits of size and time."""
    size = 0
    for chunk in response.iter_raw():
        size += len(chunk)
        if size > most_bytes:
            raise GarbledAnswer(f"it is longer than {most_bytes:,} bytes")
        if time.monotonic() > ends:
            raise ConnectionLost(f"not complete within {patience.total:g} s", again=False)
        yield chunk


def retry_wait(patience: Patience, after: float | None, number: int, ends: float) -> float | None:
    """Return the seconds until the next attempt; None if there is none or no time for it."""
    if number == patience.tries:
        return None
    grown = patience.pause * 2 ** (number - 1) * random.uniform(0.5, 1.0)
    wait = min(grown, patience.longest_pause) if after is None else after
    return wait if wait <= patience.longest_pause and time.monotonic() + wait < ends else None


def is_transient(status: int) -> bool:
    """Whether a status may pass by itself."""
    return status in (408, 429) or status >= 500


@cache
def _trusted_certificates() -> Any:
    """Return the certificates this system trusts."""
    import ssl

    return ssl.create_default_context()


def _library(name: str) -> Any:
    try:
        import httpx2
    except ImportError:
        why = 'the package httpx2 is not installed; run `pip install "everturn[models]"`'
        raise ModelUnreachable(name, why) from None
    return httpx2


def _last_deltas(events: ServerEventStream, assembly: ReplyAssembly) -> Iterator[Delta]:
    """Yield the deltas of an event without its empty line; it may be incomplete."""
    for data in events.last():
        try:
            yield from assembly.feed(data)
        except GarbledAnswer:
            return


def _give_up(failed_try: RetryableFailure, tries: int) -> Iterator[Delta]:
    """Yield the cut reply of the last attempt, or raise its error."""
    if failed_try.cut is None:
        failed_try.error.tries = tries
        raise failed_try.error from None
    yield Delta("end", reply=failed_try.cut)
