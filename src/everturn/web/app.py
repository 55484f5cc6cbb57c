"""The ASGI application: routes, answers, errors, templates, static files, and serving it.

Every page and operation is a plain function; it runs in a thread of the archive. An `EverturnError` is shown with its own
message; any other error is reported as a defect, without any content. No path is ever built from a request. A page `x` is
the template `x.html`, which puts `parts/x.html` into the frame of all pages; an open page fetches only the part.
Templates escape all text; only the output of `export.page` is trusted as HTML.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from functools import cache, partial
from hashlib import blake2b
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from everturn import __version__
from everturn.errors import Busy, EverturnError, NothingFound, UsageError
from everturn.secrets.redaction import redact_text
from everturn.sessions.lookup import ROW_COLUMNS
from everturn.sessions.secrets import archive_cleaner
from everturn.store.contract import Store
from everturn.text.printable import plural, printable, to_json
from everturn.text.times import ago, duration, iso, minute
from everturn.web.addresses import OPERATIONS, PAGES, PageAddress
from everturn.web.api.operation import Operation
from everturn.web.request import Answer, Bytes, PageReply, RedirectReply, WebRequest
from everturn.web.security import KEY, ONCE, TOKEN_SCOPE, Guard
from everturn.web.site import Site

if TYPE_CHECKING:
    import uvicorn

_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ico": "image/x-icon",
}


class StaticFile(Struct, frozen=True):
    kind: str
    data: bytes
    tag: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    found = {}
    for entry in (resources.files("everturn.web") / "static").iterdir():
        ending = entry.name[entry.name.rfind(".") :]
        if ending in _MEDIA_TYPES:
            found[entry.name] = _make_file(_MEDIA_TYPES[ending], entry.read_bytes())
    from everturn.export.page.markup import STYLE  # the same as in an exported file

    found["page.css"] = _make_file(_MEDIA_TYPES[".css"], STYLE.encode())
    return found


def _make_file(kind: str, data: bytes) -> StaticFile:
    return StaticFile(kind, data, f'"{blake2b(data, digest_size=8).hexdigest()}"')


#: The navigation bar: address, name, key after `g`.
BAR = (
    ("/", "Home", "h"),
    ("/sessions", "Sessions", "s"),
    ("/search", "Search", "f"),
    ("/paths", "Paths", "p"),
    ("/costs", "Costs", "c"),
    ("/health", "Health", "d"),
)


def render_page(site: Site, page: PageReply, path: str, now: int, part: bool, token: str = "", change: int = -1) -> str:
    """Render a page, or only its changing part. `token` is the one of the browser session, `change` that of its data."""
    name = f"parts/{page.template}.html" if part else f"{page.template}.html"
    return (
        environment()
        .get_template(name)
        .render(
            page.values,
            site=site,
            page_title=page.title,
            here=path,
            now=now,
            bar=BAR,
            version=__version__,
            token=token or site.token,
            change=change,
        )
    )


@cache
def environment() -> Environment:
    """Return the template environment, made once."""
    made = Environment(
        loader=PackageLoader("everturn.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "iso": iso,
        "duration": duration,
        "number": "{:,}".format,
        "size": size_text,
        "moment": time_html,
        "day": minute,
    }
    made.globals |= {"ago": ago, "counted": plural, "row_columns": ROW_COLUMNS}
    return made


def size_text(n: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n < 1000:
            return f"{n:,.0f} {unit}" if unit == "bytes" or n >= 100 else f"{n:,.1f} {unit}"
        n /= 1000
    return f"{n:,.1f} GB"


def time_html(ms: int | None, now: int) -> Markup:
    """Return a relative time, with the exact one as its tooltip."""
    if ms is None:
        return Markup("")
    return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(iso(ms), ago(ms, now))


_HTML = "text/html; charset=utf-8"
_JSON = "application/json"


def application(site: Site, port: int) -> Guard:
    routes = [Route(one.path, partial(_answer_page, site, one)) for one in PAGES]
    routes += [Route(one.path, partial(_answer_operation, site, one), methods=[one.method]) for one in OPERATIONS]
    routes += [Route("/events", partial(_answer_events, site))]
    routes += [Route("/static/{name}", _answer_file), Route("/favicon.ico", partial(_answer_file, name="favicon.svg"))]
    handlers = {HTTPException: partial(_answer_missing, site), Exception: partial(_answer_defect, site)}
    return Guard(Starlette(routes=routes, exception_handlers=handlers), port, site.token, site.key)


async def _answer_page(site: Site, page: PageAddress, request: Request) -> Response:
    now, change = site.clock(), site.live.number  # before anything is read: what changes later is told
    is_part = request.query_params.get("part") == "1"

    def job(store: Store) -> Response:
        made = page.draw(_make_request(site, store, request, {}, now))
        if isinstance(made, RedirectReply):
            return RedirectResponse(made.to, 303)
        if isinstance(made, Bytes):
            return _file_response(request, made)
        text = render_page(site, made, request.url.path, now, is_part, _token(request), change)
        return _tagged_response(request, text.encode("utf-8", "replace"), made.status)

    try:
        return await site.archive.ask(job, one_view=not page.counts)
    except EverturnError as error:
        text = _error_page(site, _error_sentence(error), _error_status(error), request, is_part)
        return _tagged_response(request, text.encode("utf-8", "replace"), _error_status(error))


async def _answer_events(site: Site, request: Request) -> Response:
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(site.live.events(), media_type="text/event-stream", headers=headers)


async def _answer_operation(site: Site, operation: Operation, request: Request) -> Response:
    try:
        body = await _read_body(request) if operation.method != "GET" else {}
        run: Answer = operation.run

        def job(store: Store) -> bytes:
            web_request = _make_request(site, store, request, body, site.clock())
            return to_json(run(web_request), web_request.clean).encode()

        if operation.method == "GET":
            data = await site.archive.ask(job, one_view=not operation.counts)
        else:
            data = await site.archive.change(job)
        return Response(data, media_type=_JSON, headers={"cache-control": "no-store"})
    except EverturnError as error:
        failure = to_json({"schema": "everturn/error@1", "error": _error_sentence(error)})
        return Response(failure, _error_status(error), media_type=_JSON)


def _make_request(site: Site, store: Store, request: Request, body: dict[str, Any], now: int) -> WebRequest:
    given = request.query_params
    pairs = given.multi_items()
    return WebRequest(store, site, dict(given), pairs, request.path_params, body, now, archive_cleaner(store))


async def _read_body(request: Request) -> dict[str, Any]:
    """Decode the body of a change: one JSON object. Raises UsageError."""
    try:
        value = msgspec.json.decode(await request.body() or b"{}")
    except (msgspec.DecodeError, ClientDisconnect) as error:
        raise UsageError("the request is not JSON") from error
    if not isinstance(value, dict):
        raise UsageError("the request is not a JSON object")
    return value


def _tagged_response(request: Request, data: bytes, status: int, kind: str = _HTML) -> Response:
    """Return an answer with an ETag; 304 if the client has it."""
    tag = f'"{blake2b(data, digest_size=12).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "no-cache, private"}
    if status == 200 and request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, status, media_type=kind, headers=headers)


def _file_response(request: Request, made: Bytes) -> Response:
    response = _tagged_response(request, made.data, 200, made.kind)
    if made.name:
        response.headers["content-disposition"] = f'attachment; filename="{made.name}"'
    return response


async def _answer_file(request: Request, name: str = "") -> Response:
    file = static_files().get(name or request.path_params["name"])
    if file is None:
        raise HTTPException(404)
    headers = {"etag": file.tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.data, media_type=file.kind, headers=headers)


# errors ---------------------------------------------------------------------------------------------------------------
def _error_status(error: EverturnError) -> int:
    for kind, status in ((NothingFound, 404), (UsageError, 400), (Busy, 503)):
        if isinstance(error, kind):
            return status
    return 500


def _error_sentence(error: EverturnError) -> str:
    """Return the message without secrets: it may contain a database address with its password."""
    return printable(redact_text(str(error)), "")


def _error_page(site: Site, sentence: str, status: int, request: Request, is_part: bool = False) -> str:
    page = PageReply(
        "error", {"sentence": sentence, "status": status}, "Not found" if status == 404 else "Something is wrong"
    )
    return render_page(site, page, request.url.path, site.clock(), is_part, _token(request))


def _token(request: Request) -> str:
    return str(request.scope.get(TOKEN_SCOPE, ""))


async def _answer_missing(site: Site, request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "there is no page at this address", 405: "this method is not allowed here"}
    return _answer_failure(site, request, words.get(status, "the request cannot be answered"), status)


async def _answer_defect(site: Site, request: Request, error: Exception) -> Response:
    failure = f"internal error: {type(error).__name__}; please report it and what you did"
    site.warn(f"{failure} ({request.url.path}, {_error_place(error)})")
    return _answer_failure(site, request, failure, 500)


def _error_place(error: Exception) -> str:
    """Return the place in our code, without any content."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}" if at is not None else "?"


def _answer_failure(site: Site, request: Request, sentence: str, status: int) -> Response:
    if request.url.path.startswith("/api/"):
        return Response(to_json({"schema": "everturn/error@1", "error": sentence}), status, media_type=_JSON)
    return Response(_error_page(site, sentence, status, request), status, media_type=_HTML)


HOST = "127.0.0.1"
PORT = 8760
_PORTS_TRIED = 20  # from the default port on, when none was given


def serve_site(site: Site, port: int | None, ready: Callable[[str, str], None]) -> None:
    """Serve until interrupted; call `ready` with the address and a one-time link. Raises EverturnError."""
    import uvicorn

    listener = open_listener(port)
    bound = listener.getsockname()[1]
    app = application(site, bound)
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, lifespan="off", server_header=False,
        timeout_graceful_shutdown=3, ws="none",
    )  # fmt: skip
    address = f"http://{HOST}:{bound}/"
    if site.key:
        ready(f"{address}?{KEY}={site.key}", f"{address}?{ONCE}={app.sessions.new_code()}")
    else:
        ready(address, address)
    server = uvicorn.Server(config)
    _end_events_on_exit(server, site)
    site.live.start()
    try:
        server.run([listener])
    finally:
        listener.close()
        site.close()


def _end_events_on_exit(server: uvicorn.Server, site: Site) -> None:
    """End the events of open pages first: the server waits for every answer that goes on."""
    handle_exit = server.handle_exit

    def end_and_exit(number: int, frame: Any) -> None:
        site.live.end_events()
        handle_exit(number, frame)

    server.handle_exit = end_and_exit  # type: ignore[assignment,method-assign]


def open_listener(port: int | None) -> socket.socket:
    """Return a socket that listens on the port; without one, on the default port or the next free one.

    It listens before the address is printed, so that an early client waits instead of failing.
    """
    if port is not None:
        return _bind_port(port)
    for number in range(PORT, PORT + _PORTS_TRIED):
        try:
            return _bind_port(number)
        except EverturnError:
            continue
    return _bind_port(0)


def _bind_port(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port), backlog=128)
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise EverturnError(f"port {port} cannot be used: {why}; name another with --port") from error
