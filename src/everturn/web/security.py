"""Which requests are answered, and what a browser may do with the answer.

The server listens on the loopback interface only. A request must name this host and port: otherwise a web site could point
its own name at this machine and read everything (DNS rebinding). A change must carry the token of this run, which only our
own pages know, and must not come from another origin (CSRF). The content security policy lets a page run, load and send
only our own files, so that even injected markup would do nothing.

Other users of the machine reach the loopback interface too. A run with a key answers only those who know it. The key is in
the printed address; a browser that is opened gets a one-time code instead, since others can see the arguments of a program.
Either is exchanged for a cookie that names a browser session, and leaves the address. The token of changes is derived from
the session, so a page of one session cannot change anything in another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from hashlib import sha256
from hmac import compare_digest
from hmac import new as new_hmac
from http.cookies import CookieError, SimpleCookie
from secrets import token_hex
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
ONCE = "once"  # in the address: a code that is good for one use
TOKEN_SCOPE = "everturn.token"  # noqa: S105 -- where a request finds the token of its session
_MOST_SESSIONS = 100
_BY_HEADER = "header"  # the session of a program that sends the key with each request
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


class BrowserSessions:
    """Who may use a run: those with its key, a one-time code, or a cookie that they got for one of them."""

    def __init__(self, token: str, key: str, cookie: str) -> None:
        self._token, self._key, self.cookie = token, key, cookie
        self._sessions: dict[str, None] = {}  # oldest first
        self._codes: set[str] = set()

    def new_code(self) -> str:
        """Return a code that opens one session."""
        self._codes.add(code := token_hex(24))
        return code

    def session_of(self, headers: dict[str, str]) -> str | None:
        """Return the session of a request: "" in a run without a key, None for a stranger."""
        if not self._key:
            return ""
        if self._is_key(headers.get(KEY_HEADER, "")):
            return _BY_HEADER
        try:
            held = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            held = None
        shown = held.value if held else ""
        return next((one for one in self._sessions if compare_digest(one.encode(), shown.encode())), None)

    def token_of(self, session: str) -> str:
        """Return the token that changes of a session must carry."""
        return new_hmac(self._token.encode(), session.encode(), sha256).hexdigest() if session else self._token

    def begin(self, given: list[tuple[str, str]]) -> str | None:
        """Begin a session for who shows the key or an unused code in the address; return its cookie."""
        code = next((value for name, value in given if name == ONCE and value in self._codes), "")
        if not code and not any(name == KEY and self._is_key(value) for name, value in given):
            return None
        self._codes.discard(code)
        self._sessions[session := token_hex(24)] = None
        while len(self._sessions) > _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        return session

    def _is_key(self, shown: str) -> bool:
        return bool(self._key) and compare_digest(shown.encode(), self._key.encode())


class Guard:
    """The middleware that refuses requests."""

    def __init__(self, app: Asgi, port: int, token: str, key: str = "") -> None:
        self._app = app
        self.sessions = BrowserSessions(token, key, f"everturn-{port}")  # browsers share cookies between ports
        self._hosts = {f"{name}:{port}" for name in NAMES}
        self._origins = {f"http://{host}" for host in self._hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        session = self.sessions.session_of(headers)
        refused = self.refusal(scope["method"], headers, self.sessions.token_of(session or ""))
        if session is None and (refused is None or scope["method"] not in _SAFE_METHODS):
            moved = self._key_redirect(scope) if refused is None else None
            if moved is not None:
                await _answer(_with_headers(send), 303, b"", moved)
                return
            refused = 403, "open the address that `everturn web` has printed, with its key"
        if refused is None:
            scope[TOKEN_SCOPE] = self.sessions.token_of(session or "")
            await self._app(scope, receive, _with_headers(send))
            return
        status, why = refused
        await _refuse(_with_headers(send), status, why)

    def refusal(self, method: str, headers: dict[str, str], token: str) -> tuple[int, str] | None:
        """Return status and reason if a request is refused, else None."""
        if headers.get("host", "").lower() not in self._hosts:
            return 421, "this server answers to 127.0.0.1 and localhost only"
        origin = headers.get("origin")
        if origin is not None and origin.lower() not in self._origins:
            return 403, "requests from other sites are refused"
        if method in _SAFE_METHODS:
            return None
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            return 403, "requests from other sites are refused"
        if not compare_digest(headers.get(TOKEN_HEADER, "").encode(), token.encode()):
            return 403, "changes need the token of this run; reload the page"
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > _LONGEST_BODY or "transfer-encoding" in headers:
            return 413, "the request is too long"
        return None

    def _key_redirect(self, scope: Scope) -> list[tuple[bytes, bytes]] | None:
        """Return the headers that move the key from the address into a cookie; None without the right key."""
        given = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] not in _SAFE_METHODS or (session := self.sessions.begin(given)) is None:
            return None
        rest = urlencode([pair for pair in given if pair[0] not in (KEY, ONCE)])
        to = f"/{quote(scope['path'].lstrip('/'))}" + (f"?{rest}" if rest else "")
        cookie = f"{self.sessions.cookie}={session}; Path=/; HttpOnly; SameSite=Lax"
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
