"""Which requests are answered, and what a browser may do with the answer.

The server listens on the loopback interface only. A request must name this host and port: otherwise a web site could point
its own name at this machine and read everything (DNS rebinding). A change must carry the token of this run, which only our
own pages know, and must not come from another origin (CSRF). The content security policy lets a page run, load and send
only our own files, so that even injected markup would do nothing.

Other users of the machine reach the loopback interface too. A run with a key answers only those who know it: the key is in
the printed address, moves into a cookie, and out of the address again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

NAMES = ("127.0.0.1", "localhost")
TOKEN_HEADER = "x-everturn-token"  # noqa: S105 -- the name of the header
KEY_HEADER = "x-everturn-key"
KEY = "key"  # in the address
_SAFE_METHODS = ("GET", "HEAD")
_LONGEST_BODY = 64 * 1024

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

#: Sent with every answer.
HEADERS = {
    "content-security-policy": CSP,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in HEADERS.items()]


class Guard:
    """The middleware that refuses requests."""

    def __init__(self, app: Asgi, port: int, token: str, key: str = "") -> None:
        self._app, self._token, self._key = app, token, key
        self._cookie = f"everturn-{port}"  # browsers share cookies between ports
        self._hosts = {f"{name}:{port}" for name in NAMES}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused = self.refusal(scope["method"], headers)
        if refused is None and not self._has_key(headers):
            moved = self._key_redirect(scope)
            if moved is not None:
                await _answer(_with_headers(send), 303, b"", moved)
                return
            refused = 403, "open the address that `everturn web` has printed, with its key"
        if refused is None:
            await self._app(scope, receive, _with_headers(send))
            return
        status, why = refused
        await _refuse(_with_headers(send), status, why)

    def refusal(self, method: str, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return status and reason if a request is refused, else None."""
        if headers.get("host", "").lower() not in self._hosts:
            return 421, "this server answers to 127.0.0.1 and localhost only"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self._origins:
            return 403, "requests of other sites are not answered"
        if method in _SAFE_METHODS:
            return None
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return 403, "requests of other sites are not answered"
        if not compare_digest(headers.get(TOKEN_HEADER, "").encode(), self._token.encode()):
            return 403, "changes need the token of this run; reload the page"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > _LONGEST_BODY or "transfer-encoding" in headers:
            return 413, "the request is too long"
        return None

    def _has_key(self, headers: dict[str, str]) -> bool:
        """Return whether a cookie or header has the key; always true for a run without one."""
        if not self._key:
            return True
        try:
            held = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            held = None
        return any(map(self._is_key, (headers.get(KEY_HEADER, ""), held.value if held else "")))

    def _is_key(self, shown: str) -> bool:
        return compare_digest(shown.encode(), self._key.encode())

    def _key_redirect(self, scope: Scope) -> list[tuple[bytes, bytes]] | None:
        """Return the headers that move the key from the address into a cookie; None without the right key."""
        given = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] not in _SAFE_METHODS or not any(
            name == KEY and self._is_key(value) for name, value in given
        ):
            return None
        rest = urlencode([pair for pair in given if pair[0] != KEY])
        to = f"/{quote(scope['path'].lstrip('/'))}" + (f"?{rest}" if rest else "")
        cookie = f"{self._cookie}={self._key}; Path=/; HttpOnly; SameSite=Lax"
        return [(b"location", to.encode()), (b"set-cookie", cookie.encode()), (b"cache-control", b"no-store")]


def _with_headers(send: Send) -> Send:
    async def send_message(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_RAW_HEADERS]
        await send(message)

    return send_message


async def _refuse(send: Send, status: int, why: str) -> None:
    kind = (b"content-type", b"text/plain; charset=utf-8")
    await _answer(send, status, f"{why}\n".encode(), [kind, (b"connection", b"close")])


async def _answer(send: Send, status: int, body: bytes, head: list[tuple[bytes, bytes]]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*head, length]})
    await send({"type": "http.response.body", "body": body})
