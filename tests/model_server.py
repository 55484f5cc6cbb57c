"""A scripted model server: real HTTP on this machine, four wire formats, and every fault a provider has.

    with ModelServer([Says("first"), Says(calls=(Call("read", {"path": "a"}),)), busy(retry_after=1)]) as server:
        …ask `server.base` (`/chat/completions`, `/responses`) or `server.root` (`/v1/messages`, `/v1beta/models/…`)…
    assert server.asked[0].body["messages"][-1]["content"] == "hello"

A script is a list of steps, used up one for each request, or a function from the request to a step. A step is what the
model `Says`, an HTTP `Answer` of any kind (those with names below are the usual faults), or an object that is sent as the
body as it is. Whether the answer is streamed is up to the request. A request too many is refused, and `server.surplus`
counts it. With `strict` the server refuses what providers refuse: results without calls, calls without results, and so on.
`server.asked` is the journal: path, headers (names in small letters), body, in the order of arrival.

Ids are numbered by request, so that the same script gives the same bytes. The server listens on the loopback only, on a
port of the system's choice, and stops waiting when it is closed.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from tests.model_rules import broken_rule
from tests.model_wires import Call, Says, rendered

__all__ = ["Answer", "Asked", "Call", "ModelServer", "Says", "bad_json", "broken", "busy", "empty", "garbage",
           "overloaded", "refuses", "web_page"]  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """One request as it arrived."""

    number: int  # from 1
    wire: str  # messages | chat | responses | gemini
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def is_streamed(self) -> bool:
        """Whether the answer is to come as events."""
        return bool(self.body.get("stream")) or "streamGenerateContent" in self.path

    @property
    def text(self) -> str:
        """The whole body as text, to look for what must not be in it."""
        return json.dumps(self.body, ensure_ascii=False)


@dataclass(frozen=True)
class Answer:
    """An HTTP answer of any kind."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    hang_up: bool = False  # close the connection without a word


Step = Says | Answer | dict[str, Any]
Script = Sequence[Step] | Callable[[Asked], Step]


def busy(retry_after: float | str | None = None) -> Answer:
    """429, with the time to come back or without."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return _failure(429, "rate_limit_error", "Too many requests", headers)


def overloaded() -> Answer:
    """529."""
    return _failure(529, "overloaded_error", "Overloaded")


def broken(status: int = 500) -> Answer:
    """A failure of the server itself."""
    return _failure(status, "api_error", "Internal server error")


def refuses(status: int = 400, kind: str = "invalid_request_error", says: str = "That cannot be done") -> Answer:
    """A request that is not taken: 400 wrong, 401 key, 403 policy, 404 model, 413 size."""
    return _failure(status, kind, says)


def bad_json() -> Answer:
    """Half an object."""
    return Answer(body=b'{"id": "msg_1", "content": [{"type": "te')


def garbage(data: bytes = b'data: {"nonsense": \x00\xff\n\ndata: <html>\n\n') -> Answer:
    """Events that are none."""
    return Answer(body=data, content_type="text/event-stream")


def empty(content_type: str = "application/json") -> Answer:
    """No byte at all."""
    return Answer(content_type=content_type)


def web_page() -> Answer:
    """What a proxy or a captive portal shows."""
    return Answer(body=b"<html><body>Please log in</body></html>", content_type="text/html")


def _failure(status: int, kind: str, says: str, headers: Mapping[str, str] | None = None) -> Answer:
    body = {"type": "error", "error": {"type": kind, "message": says}}
    return Answer(status, json.dumps(body).encode(), headers=headers or {})


class ModelServer:
    """See the module."""

    def __init__(self, script: Script = (), strict: bool = False) -> None:
        self.asked: list[Asked] = []
        self.surplus = 0
        self.closing = threading.Event()
        self._script, self._strict = script, strict
        self._lock = threading.Lock()
        self._http = _Server(self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def root(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def base(self) -> str:
        """The address with the version that most clients want."""
        return f"{self.root}/v1"

    def step(self, wire: str, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> tuple[Asked, Step]:
        """Note a request and say what comes back."""
        with self._lock:
            asked = Asked(len(self.asked) + 1, wire, path, headers, body)
            self.asked.append(asked)
            wrong = broken_rule(wire, body) if self._strict else None
            if wrong is not None:
                return asked, refuses(400, "invalid_request_error", wrong)
            if callable(self._script):
                return asked, self._script(asked)
            if asked.number <= len(self._script):
                return asked, self._script[asked.number - 1]
            self.surplus += 1
            return asked, refuses(400, "script_over", "the script has no more answers")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up, also between two requests, is nothing to tell."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 600

    def do_GET(self) -> None:
        model = {"id": "scripted", "type": "model", "object": "model", "display_name": "scripted"}
        self._send(Answer(body=json.dumps({"data": [model]}).encode()))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        if (counted := _counting(path)) is not None:
            self._send(Answer(body=json.dumps({counted: 7}).encode()))
            return
        wire = _wire(path)
        if wire is None:
            self._send(refuses(404, "not_found_error", "no such address"))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked, step = self.server.owner.step(wire, self.path, headers, body)
        try:
            self._answer(asked, step)
        except OSError:  # nobody waits any more
            self.close_connection = True

    def _answer(self, asked: Asked, step: Step) -> None:
        if isinstance(step, Answer):
            self._pause(step.wait)
            self._send(step)
        elif isinstance(step, dict):
            self._send(Answer(body=json.dumps(step).encode()))
        else:
            self._say(asked, step)

    def _say(self, asked: Asked, says: Says) -> None:
        answer = rendered(asked.wire, says, says.model or asked.body.get("model") or "scripted", asked.number)
        self._pause(says.wait)
        if asked.is_streamed:
            self._stream(answer.events, says)
            return
        body = json.dumps(answer.whole).encode()
        self._send(Answer(body=body), None if says.cut_after is None else body[: says.cut_after])

    def _send(self, answer: Answer, only: bytes | None = None) -> None:
        if answer.hang_up:
            self.close_connection = True
            return
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body if only is None else only)
        self.close_connection = self.close_connection or only is not None

    def _stream(self, events: list[tuple[str, Any]], says: Says) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for place, (name, data) in enumerate(events):
            if place == says.cut_after:
                self.close_connection = True  # the last chunk does not come
                return
            text = data if isinstance(data, str) else json.dumps(data)
            event = (f"event: {name}\n" if name else "") + f"data: {text}\n\n"
            self._chunk(event.encode())
            self._pause(says.drip)
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _pause(self, seconds: float) -> None:
        if seconds:
            self.server.owner.closing.wait(seconds)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _wire(path: str) -> str | None:
    ends = {"/messages": "messages", "/chat/completions": "chat", "/responses": "responses"}
    if path.lower().endswith("generatecontent"):
        return "gemini"
    return next((wire for end, wire in ends.items() if path.endswith(end)), None)


def _counting(path: str) -> str | None:
    """The name of the count in the answer, where a path counts tokens."""
    return {"/messages/count_tokens": "input_tokens", ":countTokens": "totalTokens"}.get(
        next((end for end in ("/messages/count_tokens", ":countTokens") if path.endswith(end)), "")
    )
