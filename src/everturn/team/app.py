"""The server of a team's archive, as an ASGI application. Every route is a row of ROUTES; one function answers all of them.

That function finds out who calls (a token in `Authorization: Bearer`), checks the scope that the route needs, opens the archive
limited to what the caller may see (`store.visibility`), and writes the audit log. A route that reads never gets any other
connection, so none of them filters by itself.

    GET  /healthz /readyz /metrics       without a token: alive, able to answer, counters
    GET  / /login /sessions/{session}    pages for a browser (`team.pages`), also /stats, /why and /sessions/{session}/restore
    GET  /v1/login, POST /v1/login       without a token: log in with the identity provider (`team.sign_in`)
    GET  /v1/me                          who am I
    GET  /v1/sessions /v1/search         lists
    GET  /v1/sessions/{session}          the turns of a session as text
    GET  /v1/sessions/{session}/restore  what a fresh agent must know to continue it
    GET  /v1/stats /v1/why               what sessions did, in sums; which turn wrote a line of a project's repository
    GET  /v1/links, POST /v1/links       links to single sessions, which expire; POST /v1/links/{number}/revoke ends one
    GET  /s/{link}                       the session of a link as a page, without a token
    POST /v1/erase                       erase an own session, or everything of one's own
    POST /v1/share                       share an own session with a project, or take it back
    GET  /v1/push, POST /v1/push/*       see `team.intake`
    GET  /v1/pull /v1/pull/bytes         one's own files, for another machine (`team.download`)
    POST /mcp                            the Model Context Protocol, one JSON-RPC message per request
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from everturn import __version__
from everturn.clock import Clock
from everturn.errors import Busy, EverturnError, NothingFound, UsageError
from everturn.model.conversation import prepared
from everturn.secrets.redaction import redact_text
from everturn.store.contract import Store, open_store
from everturn.store.people import Caller, People, ShareLink
from everturn.store.visibility import release, restrict
from everturn.team import answers, download, intake, pages
from everturn.team.limits import QuotaExceeded, expire_files
from everturn.team.sign_in import LoginCode, LoginRefused, SignIn, provider_rules
from everturn.text.printable import printable, to_json

T = TypeVar("T")

THREADS = 8
PUSHES = 2  # threads for pushes: writers take turns, and one that waits must not keep readers waiting
LONGEST = intake.LONGEST + (64 << 10)  # bytes of a request
_JSON = "application/json"
PUBLIC, PAGE = "public", "page"
_NOBODY = Caller(0, 0, "", "", (), 0)
_MOST = 1 << 50  # of an id or a place in a file


class TeamRequest(Struct):
    """The arguments of a route: the archive as the caller may see it, or to write to; the parameters; the body.

    On the page of a link, the caller is the person who made it, with no rights, and `link` says what may be shown.
    """

    store: Store
    caller: Caller
    given: dict[str, str]
    body: bytes
    now: int
    link: ShareLink | None = None
    sign_in: SignIn | None = None
    headers: Mapping[str, str] = {}
    repositories: Mapping[str, Path] = {}  # copies of the caller's projects on this machine

    def number(self, name: str, default: int, most: int, least: int = 1) -> int:
        """Return a parameter that is a number. Raises UsageError."""
        value = self.given.get(name, "") or str(default)
        if not (value.isascii() and value.isdigit()) or len(value) > 16 or not least <= int(value) <= most:
            raise UsageError(f"{name}={value[:40]!r} is not a number from {least} to {most}")
        return int(value)

    def read(self, kind: type[T], decode: Callable[..., T] = msgspec.json.decode) -> T:
        """Return the body, which is JSON unless `decode` reads something else. Raises UsageError."""
        try:
            return decode(self.body, type=prepared(kind))
        except msgspec.DecodeError as error:
            raise UsageError(f"the request cannot be read: {error}") from error


Answer = Callable[[TeamRequest], Any]


class TeamRoute(Struct, frozen=True):
    """An address. `scope` is what the token must allow; "": a link is enough; PUBLIC: nothing is needed;
    PAGE: a token in a cookie, for pages only.

    `writes`: the archive is opened to write.
    """

    method: str
    path: str
    scope: str
    answer: Answer
    action: str = ""  # in the audit log
    writes: bool = False


class Refused(EverturnError):
    """No valid token, or not one for this."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


class TeamServer:
    """One archive, its threads and counters."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        log: Callable[[str], None] = lambda line: None,
        repositories: Mapping[str, Path] | None = None,
    ) -> None:
        self.url, self._clock, self._log = url, clock, log
        self._repositories = dict(repositories or {})  # a project's name and the folder of its copy here
        self._threads = ThreadPoolExecutor(THREADS, "everturn-team")
        self._pushes = ThreadPoolExecutor(PUSHES, "everturn-push")
        self._counts: Counter[tuple[str, int]] = Counter()
        self._pushed_bytes = 0
        self._lock = Lock()
        self._free: list[Store] = []
        self._sign_in = SignIn()

    def application(self) -> Starlette:
        routes = [
            Route("/healthz", _healthy),
            Route("/readyz", self._ready),
            Route("/metrics", self._metrics),
            *(Route(one.path, partial(self._endpoint, one), methods=[one.method]) for one in ROUTES),
        ]
        return Starlette(routes=routes)

    def finish_interrupted(self) -> int:
        """Derive what was pushed before the server was interrupted."""
        with closing(open_store(self.url, create=False, upgrade=False)) as store:
            return intake.derive_unfinished(store, self._clock())

    def expire(self) -> int:
        """Erase what is older than the rules of the archive keep it."""
        with closing(open_store(self.url, create=False, upgrade=False)) as store:
            return expire_files(store, self._clock())

    def close(self) -> None:
        """Close the connections when the running requests have ended."""
        self._threads.shutdown()
        self._pushes.shutdown()
        for store in self._free:
            store.close()

    # --- requests ---
    async def _endpoint(self, route: TeamRoute, request: Request) -> Response:
        try:
            body = await _read_body(request) if route.method == "POST" else b""
            job = partial(self._answer, route, request, body)
            threads = self._pushes if route.path.startswith("/v1/push/") else self._threads
            data: Response = await asyncio.get_running_loop().run_in_executor(threads, job)
            status = data.status_code
        except EverturnError as error:
            status = _status(error)
            sentence = (
                printable(redact_text(str(error)), "")
                if status < 500 or isinstance(error, Busy)
                else "the server failed"
            )
            data = (
                pages.refusal(sentence, status)
                if not route.path.startswith(("/v1/", "/mcp"))
                else Response(to_json({"error": sentence}), status, media_type=_JSON)
            )
        except Exception as failure:  # reported without any content
            status = 500
            data = Response(to_json({"error": "the server failed"}), status, media_type=_JSON)
            self._log(to_json({"at": self._clock(), "failure": type(failure).__name__, "route": route.path}))
        with self._lock:
            self._counts[route.path, status] += 1
        self._log(to_json({"at": self._clock(), "method": route.method, "route": route.path, "status": status}))
        data.headers["cache-control"] = "no-store"
        data.headers["referrer-policy"] = "no-referrer"
        data.headers["x-content-type-options"] = "nosniff"
        return data

    def _answer(self, route: TeamRoute, request: Request, body: bytes) -> Response:
        now = self._clock()
        given = {**request.query_params, **request.path_params}
        with self._connection() as store:
            link = None
            if route.scope == PUBLIC:
                caller = _NOBODY
            elif route.scope == PAGE:
                found = People(store).caller(pages.token_of(request.headers), now)
                if found is None or not found.may("read"):
                    return pages.to_login()
                caller = found
            elif route.scope:
                caller = _authenticate(store, request.headers.get("authorization", ""), route.scope, now)
            else:
                caller, link = _follow_link(store, given.pop("link", ""), now)
                given["session"] = link.native_id
            if route.action:  # without the lock of writers: a reader must not wait for a push
                People(store).note(caller, route.action, given.get("session", "")[:200], now)
            copies = {name: at for name, at in self._repositories.items() if People(store).membership(caller, name)}
            if not route.writes:
                restrict(store, caller.name)
            asked = TeamRequest(store, caller, given, body, now, link, self._sign_in, request.headers, copies)
            made = route.answer(asked)
        if route.path == "/v1/push/piece":
            with self._lock:
                self._pushed_bytes += len(body)
        return made if isinstance(made, Response) else Response(to_json(made), media_type=_JSON)

    @contextmanager
    def _connection(self) -> Iterator[Store]:
        """Use a connection that was kept, or open one. One that failed is not used again."""
        with self._lock:
            store = self._free.pop() if self._free else None
        if store is None or not _is_alive(store):
            store = open_store(self.url, create=False, upgrade=False, durable=True)
        try:
            yield store
        except (NothingFound, UsageError, Refused, QuotaExceeded, LoginRefused):
            self._keep(store)
            raise
        except BaseException:
            store.close()
            raise
        self._keep(store)

    def _keep(self, store: Store) -> None:
        if release(store):
            with self._lock:
                self._free.append(store)
        else:
            store.close()

    # --- health ---
    async def _ready(self, request: Request) -> Response:
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, self._probe)
        except EverturnError as error:
            return PlainTextResponse(f"{printable(redact_text(str(error)), '')}\n", 503)
        return PlainTextResponse("ready\n")

    def _probe(self) -> None:
        with closing(open_store(self.url, create=False, upgrade=False)) as store:
            if not store.setting("shared"):
                raise EverturnError("the archive is not shared; run `everturn admin init`")

    async def _metrics(self, request: Request) -> Response:
        with self._lock:
            lines = [
                f'everturn_requests_total{{route="{route}",status="{status}"}} {n}'
                for (route, status), n in sorted(self._counts.items())
            ]
            lines.append(f"everturn_pushed_bytes_total {self._pushed_bytes}")
        head = ["# TYPE everturn_requests_total counter", "# TYPE everturn_pushed_bytes_total counter"]
        return PlainTextResponse("\n".join([*head, *lines, ""]))


def _is_alive(store: Store) -> bool:
    """Whether a connection that was kept still works: the database may have been restarted."""
    try:
        return bool(store.setting("shared"))
    except EverturnError:
        store.close()
        return False


async def _healthy(request: Request) -> Response:
    return PlainTextResponse(f"everturn {__version__}\n")


async def _read_body(request: Request) -> bytes:
    """Read the body, but not more than is allowed. Raises UsageError."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > LONGEST:
            raise UsageError("the request is too long")
    return bytes(data)


def _authenticate(store: Store, header: str, scope: str, now: int) -> Caller:
    kind, _, token = header.partition(" ")
    caller = People(store).caller(token.strip(), now) if kind.lower() == "bearer" and token else None
    if caller is None:
        raise Refused(401, "send a valid token: Authorization: Bearer TOKEN; `everturn admin token` makes one")
    if not caller.may(scope):
        raise Refused(403, f"this token does not allow to {scope}")
    return caller


def _follow_link(store: Store, secret: str, now: int) -> tuple[Caller, ShareLink]:
    found = People(store).link(secret, now)
    if found is None:
        raise NothingFound("this link is not valid, or no longer; ask the person who sent it for a new one")
    return found


def _status(error: EverturnError) -> int:
    if isinstance(error, Refused):
        return error.status
    return next((status for kind, status in _STATUSES.items() if isinstance(error, kind)), 500)


_STATUSES = {NothingFound: 404, UsageError: 400, LoginRefused: 403, QuotaExceeded: 413, Busy: 503}


# --- routes ---


_unpack = msgspec.msgpack.decode


def _push_piece(request: TeamRequest) -> Any:
    return intake.take_piece(request.store, request.caller, request.read(intake.Piece, _unpack), request.now)


def _push_drop(request: TeamRequest) -> Any:
    intake.drop_file(request.store, request.caller, request.read(intake.FileName, _unpack), request.now)
    return {}


def _push_erasures(request: TeamRequest) -> Any:
    keys = request.read(list[intake.SessionKey], _unpack)
    return {"erased": intake.forget_sessions(request.store, request.caller, keys, request.now)}


def _list_pushed(request: TeamRequest) -> Any:
    return {"items": intake.pushed_places(request.store, request.caller, request.given.get("machine", ""))}


def _pull(request: TeamRequest) -> Any:
    return _binary_response(msgspec.msgpack.encode(download.own_files(request.store, request.caller)))


def _pull_bytes(request: TeamRequest) -> Any:
    source, number = request.number("source", 1, _MOST), request.number("number", 1, _MOST)
    offset = request.number("offset", 0, _MOST, least=0)
    return _binary_response(download.own_bytes(request.store, request.caller, source, number, offset))


def _binary_response(data: bytes) -> Response:
    return Response(data, media_type="application/octet-stream")


def _login_rules(request: TeamRequest) -> Any:
    rules = provider_rules(request.store)
    if rules is None or request.sign_in is None:
        raise NothingFound("this server has no identity provider; log in with a token")
    return {"issuer": rules.issuer, "client": rules.client, "nonce": request.sign_in.new_nonce(request.now)}


def _log_in(request: TeamRequest) -> Any:
    assert request.sign_in is not None
    return request.sign_in.log_in(request.store, request.read(LoginCode), request.now)


def _links(request: TeamRequest) -> Any:
    return {"items": [answers.link_facts(one) for one in People(request.store).links(request.caller, request.now)]}


def _revoke_link(request: TeamRequest) -> Any:
    number = request.number("number", 0, _MOST)
    with request.store.write():
        People(request.store).revoke_link(request.caller, number, request.now)
        People(request.store).note(request.caller, "unlink", str(number), request.now)
    return {"id": number}


def _linked_page(request: TeamRequest) -> Any:
    assert request.link is not None
    page = answers.linked_page(request.store, request.caller, request.link)
    return Response(page, media_type="text/html", headers=answers.PAGE_HEADERS)


def _mcp(request: TeamRequest) -> Any:
    answer = answers.answer_rpc(request)
    return Response(status_code=202) if answer is None else answer


ROUTES = (
    TeamRoute("GET", "/", PAGE, pages.overview, "page"),
    TeamRoute("GET", "/sessions/{session}", PAGE, pages.session_page, "read"),
    TeamRoute("GET", "/sessions/{session}/restore", PAGE, pages.restored_page, "restore"),
    TeamRoute("GET", "/stats", PAGE, pages.stats_page, "stats"),
    TeamRoute("GET", "/why", PAGE, pages.why_page, "why"),
    TeamRoute("GET", "/login", PUBLIC, pages.login_form, writes=True),
    TeamRoute("POST", "/login", PUBLIC, pages.log_in, writes=True),
    TeamRoute("GET", "/login/sso", PUBLIC, pages.begin_sign_in, writes=True),
    TeamRoute("GET", "/login/back", PUBLIC, pages.end_sign_in, writes=True),
    TeamRoute("POST", "/logout", PUBLIC, pages.log_out, writes=True),
    TeamRoute("GET", "/v1/me", "read", lambda request: answers.describe_caller(request.caller)),
    TeamRoute("GET", "/v1/sessions", "read", answers.list_sessions, "list"),
    TeamRoute("GET", "/v1/search", "read", answers.search_archive, "search"),
    TeamRoute("GET", "/v1/sessions/{session}", "read", answers.read_session, "read"),
    TeamRoute("GET", "/v1/sessions/{session}/restore", "read", answers.restore_session, "restore"),
    TeamRoute("GET", "/v1/stats", "read", answers.sum_work, "stats"),
    TeamRoute("GET", "/v1/why", "read", answers.find_why, "why"),
    TeamRoute("POST", "/v1/share", "push", answers.share_session, writes=True),
    TeamRoute("GET", "/v1/login", PUBLIC, _login_rules, writes=True),
    TeamRoute("POST", "/v1/login", PUBLIC, _log_in, writes=True),
    TeamRoute("GET", "/v1/links", "push", _links, writes=True),
    TeamRoute("POST", "/v1/links", "push", answers.make_link, writes=True),
    TeamRoute("POST", "/v1/links/{number}/revoke", "push", _revoke_link, writes=True),
    TeamRoute("GET", "/s/{link}", "", _linked_page, "link"),
    TeamRoute("POST", "/v1/erase", "push", answers.erase_own, writes=True),
    TeamRoute("GET", "/v1/push", "push", _list_pushed, writes=True),
    TeamRoute("POST", "/v1/push/piece", "push", _push_piece, writes=True),
    TeamRoute("POST", "/v1/push/drop", "push", _push_drop, writes=True),
    TeamRoute("POST", "/v1/push/erasures", "push", _push_erasures, writes=True),
    TeamRoute("GET", "/v1/pull", "push", _pull, "pull"),
    TeamRoute("GET", "/v1/pull/bytes", "push", _pull_bytes),
    TeamRoute("POST", "/mcp", "read", _mcp, "mcp"),
)
