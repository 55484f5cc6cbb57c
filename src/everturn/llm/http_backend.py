"""Models behind HTTP: one request, its retries, and an answer that is read as it comes.

Promises: encrypted, except to this machine itself; redirects are not followed; no proxy but the configured one; an answer
has a size and a time it may take; what passes by itself (429, 529, 5xx, a lost connection) is asked again with growing,
jittered pauses as long as nothing was given out, or whenever the caller wanted the whole reply; a stream that breaks off
ends as `cut` with what came. The key is looked up when it is needed and is in no error, log or repr.

Where a request may go: to https, or to this machine itself.

An address with a name and password in it is refused, since addresses are shown and logged where keys must not be.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from functools import cached_property
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
    pause_of,
    refusal_of,
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
    deltas,
)


def address(name: str, base: str, path: str) -> str:
    """`path` behind a base address; a query of the base stays behind both. Raises `BadConfig`."""
    key = f"models.{name}.base_url"
    try:
        parts = urlsplit(base)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise BadConfig(key, "is no address") from None
    if parts.scheme not in ("http", "https") or not host:
        raise BadConfig(key, "must be an address that begins with https://")
    if "@" in parts.netloc:
        raise BadConfig(key, "must not hold a password: name the key with key_env or keyring")
    if parts.scheme == "http" and not is_loopback(host):
        raise BadConfig(key, f"{host} is another machine, so the address must begin with https://")
    return urlunsplit(SplitResult(parts.scheme, parts.netloc, join_address(parts.path, path), parts.query, ""))


def join_address(base: str, path: str) -> str:
    """Both paths; a version that both name (`…/v1` and `/v1/…`) is named once."""
    base = base.rstrip("/")
    first = "/" + path.split("/")[1]
    return base + (path.removeprefix(first) if base.endswith(first) and path.count("/") > 1 else path)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


Key = Callable[[], str]


class Patience(Struct, frozen=True):
    """How long is waited, in seconds, and how often is asked."""

    connect: float = 10.0
    read: float = 120.0  # between two pieces of an answer
    total: float = 600.0  # for everything, pauses and repetitions too
    tries: int = 4
    pause: float = 0.5  # before the first repetition; doubles each time
    longest_pause: float = 60.0  # a server that wants more is not waited for


class Endpoint(Struct, frozen=True):
    """Where a model is and how it is spoken to."""

    base: str
    patience: Patience = Patience()
    headers: dict[str, str] = {}
    extra: dict[str, Any] = {}  # members of every request
    proxy: str = ""
    window: int = 0
    max_tokens: int = 0
    is_streamed: bool = True  # ask for streams; some servers cannot
    bound: bool = False  # the provider refuses an answer of its own behind other words than those it was given to
    most_bytes: int = 64 << 20  # of one answer


class HttpBackend:
    """A `Backend` over HTTP. `key` gives the key or nothing."""

    takes_tools = True

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
        self._url = address(name, endpoint.base, wire.PATH)

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        """See `Backend`. What was given out is not asked for again."""
        yield from self._deltas(request, whole=False)

    def ask(self, request: ModelRequest) -> Reply:
        """See `Backend`. A stream that broke off is asked for again; only the last try is given back cut."""
        for delta in self._deltas(request, whole=True):
            if delta.reply is not None:
                return delta.reply
        raise BadAnswer(self.name, "the answer has no end")

    def body(self, request: ModelRequest) -> dict[str, Any]:
        """What would be sent."""
        return self._wire.body(self._fitted(request), self._endpoint.is_streamed)

    def _deltas(self, request: ModelRequest, whole: bool) -> Iterator[Delta]:
        patience = self._endpoint.patience
        ends = time.monotonic() + patience.total
        lost = ReplyTokens()  # what broken tries cost
        for number in range(1, patience.tries + 1):
            try:
                for delta in self._once(request, ends):
                    if delta.reply is None:
                        yield delta
                        continue
                    reply = _with_lost_usage(delta.reply, number, lost)
                    if reply.stop != "cut" or not whole:
                        yield Delta("end", reply=reply)
                        return
                    lost = reply.usage
                    raise RetryableFailure(ModelUnreachable(self.name, "the answer broke off"), cut=reply)
            except RetryableFailure as passing:
                wait = self._wait(passing, number, ends)
                if wait is None:
                    yield from _give_up(passing, number)
                    return
                self._sleep(wait)
            except ModelError as error:
                error.tries = number
                raise

    def _wait(self, passing: RetryableFailure, number: int, ends: float) -> float | None:
        """Seconds until the next try; None when there is none, no use or no time."""
        patience = self._endpoint.patience
        if number == patience.tries:
            return None
        grown = patience.pause * 2 ** (number - 1) * random.uniform(0.5, 1.0)
        wait = min(grown, patience.longest_pause) if passing.after is None else passing.after
        return wait if wait <= patience.longest_pause and time.monotonic() + wait < ends else None

    def _once(self, request: ModelRequest, ends: float) -> Iterator[Delta]:
        """One try. Raises `RetryableFailure` only when nothing was given out."""
        given = False
        assembly = self._wire.assembly()
        try:
            for delta in self._answer(request, assembly, ends):
                given = True
                yield delta
        except ConnectionLost as lost:
            if not given and not assembly.has_begun:
                raise lost.passing(self.name) from None
            yield Delta("end", reply=_cut_reply(assembly))
        except StreamFailed as failed:
            error = refusal_of(self.name, 0, failed.failure, self._key())
            if failed.failure.passes and given:
                yield Delta("end", reply=_cut_reply(assembly))
            elif failed.failure.passes:
                raise RetryableFailure(ModelBusy(self.name, error.why)) from None
            else:
                raise error from None
        except GarbledAnswer as garbled:
            raise BadAnswer(self.name, f"the answer cannot be read: {garbled}") from None

    def _answer(self, request: ModelRequest, assembly: ReplyAssembly, ends: float) -> Iterator[Delta]:
        http = _library(self.name)
        sent = self.body(request)
        for broken in certain_violations(self._wire.WIRE, sent):
            raise ModelRefused(self.name, f"it would not take this request: {broken.where}: {broken.sentence}")
        body = json.dumps(sent, ensure_ascii=False).encode("utf-8", "replace")
        with (
            _LossTranslation(http),
            http.Client(**self._options(http, ends)) as client,
            client.stream("POST", self._url, content=body, headers=self._headers()) as response,
        ):
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.status_code != 200:
                self._refused(response, ends)
            check_answer(self.name, kind, response.headers.get("content-encoding", ""))
            if kind == "text/event-stream":
                yield from self._events(self._pieces(response, ends), assembly)
            else:
                yield from deltas(self._wire.read(decode_json(b"".join(self._pieces(response, ends)))))

    def _fitted(self, request: ModelRequest) -> ModelRequest:
        most = min(request.max_tokens, self.max_tokens or request.max_tokens)
        extra = {**self._endpoint.extra, **request.extra}
        return structs.replace(request, model=request.model or self.model, max_tokens=most, extra=extra)

    def _events(self, pieces: Iterator[bytes], assembly: ReplyAssembly) -> Iterator[Delta]:
        events = ServerEventStream()
        for piece in pieces:
            for event in events.feed(piece):
                yield from assembly.feed(event.data)
            if assembly.is_done:
                break
        else:
            yield from _last_deltas(events, assembly)
            if not assembly.has_begun and not assembly.is_done:
                raise ConnectionLost("the answer is empty", kind=BadAnswer)
        yield Delta("end", reply=assembly.reply())

    def _pieces(self, response: Any, ends: float) -> Iterator[bytes]:
        """The bytes of an answer, as long as they are not too many and do not take too long."""
        size = 0
        for piece in response.iter_raw():
            size += len(piece)
            if size > self._endpoint.most_bytes:
                raise GarbledAnswer(f"it is longer than {self._endpoint.most_bytes} bytes")
            if time.monotonic() > ends:
                raise ConnectionLost(f"not done within {self._endpoint.patience.total:g} s", again=False)
            yield piece

    def _refused(self, response: Any, ends: float) -> None:
        """Raise what a status other than 200 means."""
        try:
            said = self._wire.failure(decode_json(b"".join(self._pieces(response, ends))))
        except (GarbledAnswer, ConnectionLost):
            said = None
        status = response.status_code
        error = refusal_of(self.name, status, said, self._key())
        passes = status in (408, 429) or status >= 500
        if passes and not isinstance(error, ModelRefused):
            raise RetryableFailure(error, pause_of(response.headers))
        raise error

    def _headers(self) -> dict[str, str]:
        """A key with a line end in it, as files and keyrings like to give, is a key without."""
        key = self._key().strip()
        if not key.isascii() or not key.isprintable():
            raise ModelRefused(self.name, "its key has a character that cannot be sent")
        fixed = {"accept": "text/event-stream, application/json", "accept-encoding": "identity"}
        fixed |= {"content-type": "application/json", "user-agent": "everturn"}
        return {**fixed, **self._wire.headers(key), **self._endpoint.headers}

    def _options(self, http: Any, ends: float) -> dict[str, Any]:
        patience = self._endpoint.patience
        left = max(0.001, ends - time.monotonic())
        timeout = http.Timeout(min(patience.read, left), connect=min(patience.connect, left))
        proxy = self._endpoint.proxy or None
        return {"timeout": timeout, "trust_env": False, "proxy": proxy, "verify": self._trusted_certificates}

    @cached_property
    def _trusted_certificates(self) -> Any:
        """The certificates this system trusts."""
        import ssl

        return ssl.create_default_context() if self._url.startswith("https:") or self._endpoint.proxy else False


class _LossTranslation:
    """Turns what the library raises about connections into `ConnectionLost`, in our own words: its own may name the address."""

    def __init__(self, http: Any) -> None:
        self._http = http

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: Any) -> None:
        http = self._http
        if isinstance(value, http.ConnectTimeout):
            raise ConnectionLost("no connection in time") from None
        if isinstance(value, http.TimeoutException):
            raise ConnectionLost("no answer in time", again=False) from None
        if isinstance(value, http.ConnectError | http.ProxyError):
            raise ConnectionLost("no connection") from None
        if isinstance(value, http.TransportError):
            raise ConnectionLost("the connection was lost") from None


def _library(name: str) -> Any:
    try:
        import httpx2
    except ImportError:
        why = "the package httpx2 is not installed: `pip install everturn[models]`"
        raise ModelUnreachable(name, why) from None
    return httpx2


def _last_deltas(events: ServerEventStream, assembly: ReplyAssembly) -> Iterator[Delta]:
    """What stands at the end of a stream without its empty line: an event, or half of one."""
    for event in events.last():
        try:
            yield from assembly.feed(event.data)
        except GarbledAnswer:
            return


def _give_up(passing: RetryableFailure, tries: int) -> Iterator[Delta]:
    """What is left after the last try: a part of an answer, or the reason why there is none."""
    if passing.cut is None:
        passing.error.tries = tries
        raise passing.error from None
    yield Delta("end", reply=passing.cut)


def _cut_reply(assembly: ReplyAssembly) -> Reply:
    return structs.replace(assembly.reply(), stop="cut")


def _with_lost_usage(reply: Reply, tries: int, lost: ReplyTokens) -> Reply:
    return structs.replace(reply, tries=tries, usage=_add_usage(lost, reply.usage))


def _add_usage(lost: ReplyTokens, used: ReplyTokens) -> ReplyTokens:
    return ReplyTokens(
        lost.input + used.input,
        lost.output + used.output,
        lost.cache_read + used.cache_read,
        lost.cache_write + used.cache_write,
        used.source,
    )
