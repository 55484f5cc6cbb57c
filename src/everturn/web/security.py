"""Who is answered, and what a browser may do with the answer.

The server listens on the loopback interface only. A request must name this host and port, else a web site could point a
name of its own at this machine and read everything (DNS rebinding). What changes something must carry the token of this
run, which only our own pages know, and must not come from another origin (CSRF). Nothing in a page may run, load or send
unless it is one of our own files; so even markup that slipped through would be dead.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

NAMES = ("127.0.0.1", "localhost")
TOKEN_HEADER = "x-everturn-token"  # noqa: S105 -- the name of the header
_SAFE = ("GET", "HEAD")
_LONGEST_BODY = 64 * 1024

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

#: Said with every answer.
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_RAW = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Guard:
    """Stands before the application."""

    def __init__(self, app: Asgi, port: int, token: str) -> None:
        self._app, self._token = app, token
        self._hosts = {f"{name}:{port}" for name in NAMES}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or say why not."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self.refusal(scope["method"], headers)
        if refused is None:
            await self._app(scope, receive, _with_headers(send))
            return
        status, why = refused
        await _refuse(_with_headers(send), status, why)

    def refusal(self, method: str, headers: dict[str, str]) -> tuple[int, str] | None:
        """Why a request is not answered, with its status; None when it is."""
        if headers.get("host", "").lower() not in self._hosts:
            return 421, "this server answers to 127.0.0.1 and localhost only"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self._origins:
            return 403, "requests of other sites are not answered"
        if method in _SAFE:
            return None
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return 403, "requests of other sites are not answered"
        if not compare_digest(headers.get(TOKEN_HEADER, "").encode(), self._token.encode()):
            return 403, "changes need the token of this run; reload the page"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > _LONGEST_BODY or "transfer-encoding" in headers:
            return 413, "the request is too long"
        return None


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_RAW]
        await send(message)

    return sent


async def _refuse(send: Send, status: int, why: str) -> None:
    body = f"{why}\n".encode()
    kind = (b"content-type", b"text/plain; charset=utf-8")
    head = [kind, (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
