"""The ASGI application: addresses, and how an answer or an error goes out.

Every page and operation is a plain function; here it is run in a thread of the archive and its answer is sent. An error
raised on purpose is told with its own sentence; anything else is told as a defect, without a word of the content.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from hashlib import blake2b
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from everturn.derive.printable import printable
from everturn.derive.redact import redact_text
from everturn.errors import Busy, EverturnError, NothingFound, UsageError
from everturn.recall.secrets import archive_cleaner
from everturn.store import Store
from everturn.web.api import OPERATIONS
from everturn.web.api.operations import Operation
from everturn.web.asking import Answer, Bytes, PageReply, RedirectReply, WebRequest
from everturn.web.drawing import render_page
from everturn.web.encoding import to_json
from everturn.web.files import static_files
from everturn.web.pages import PAGES, PageAddress
from everturn.web.security import Guard
from everturn.web.site import Site

Endpoint = Callable[[Request], Awaitable[Response]]
_HTML = "text/html; charset=utf-8"
_JSON = "application/json"


def application(site: Site, port: int) -> Guard:
    """Everything that is served, behind the guard."""
    routes = [Route(one.path, partial(_answer_page, site, one)) for one in PAGES]
    routes += [Route(one.path, partial(_answer_operation, site, one), methods=[one.method]) for one in OPERATIONS]
    routes += [Route("/static/{name}", _answer_file), Route("/favicon.ico", partial(_answer_file, name="favicon.svg"))]
    told = {HTTPException: partial(_answer_missing, site), Exception: partial(_answer_defect, site)}
    return Guard(Starlette(routes=routes, exception_handlers=told), port, site.token, site.key)


async def _answer_page(site: Site, page: PageAddress, request: Request) -> Response:
    now = site.clock()
    is_part = request.query_params.get("part") == "1"

    def job(store: Store) -> Response:
        made = page.draw(_make_request(site, store, request, {}, now))
        if isinstance(made, RedirectReply):
            return RedirectResponse(made.to, 303)
        if isinstance(made, Bytes):
            return _tagged_response(request, made.data, 200, made.kind)
        text = render_page(site, made, request.url.path, now, is_part)
        return _tagged_response(request, text.encode("utf-8", "replace"), made.status)

    try:
        return await site.archive.ask(job, one_view=not page.counts)
    except EverturnError as error:
        text = _failure_page(site, error, request, is_part)
        return _tagged_response(request, text.encode("utf-8", "replace"), _error_status(error))


async def _answer_operation(site: Site, operation: Operation, request: Request) -> Response:
    try:
        body = await _read_body(request) if operation.method != "GET" else {}
        run: Answer = operation.run

        def job(store: Store) -> bytes:
            asked = _make_request(site, store, request, body, site.clock())
            return to_json(run(asked), asked.clean)

        if operation.method == "GET":
            data = await site.archive.ask(job, one_view=not operation.counts)
        else:
            data = await site.archive.change(job)
        return Response(data, media_type=_JSON, headers={"cache-control": "no-store"})
    except EverturnError as error:
        said = to_json({"schema": "everturn/error@1", "error": _error_sentence(error)})
        return Response(said, _error_status(error), media_type=_JSON)


def _make_request(site: Site, store: Store, request: Request, body: dict[str, Any], now: int) -> WebRequest:
    given = request.query_params
    pairs = given.multi_items()
    return WebRequest(store, site, dict(given), pairs, request.path_params, body, now, archive_cleaner(store))


async def _read_body(request: Request) -> dict[str, Any]:
    """What a change was given: one JSON object."""
    try:
        value = msgspec.json.decode(await request.body() or b"{}")
    except (msgspec.DecodeError, ClientDisconnect) as error:
        raise UsageError("the request is not JSON") from error
    if not isinstance(value, dict):
        raise UsageError("the request is not a JSON object")
    return value


def _tagged_response(request: Request, data: bytes, status: int, kind: str = _HTML) -> Response:
    """An answer that is not sent again to whoever has it."""
    tag = f'"{blake2b(data, digest_size=12).hexdigest()}"'
    headers = {"etag": tag, "cache-control": "no-cache, private"}
    if status == 200 and request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(data, status, media_type=kind, headers=headers)


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
    """An error may name a path, or the address of a database with the password in it."""
    return printable(redact_text(str(error)), "")


def _failure_page(site: Site, error: EverturnError, request: Request, is_part: bool) -> str:
    return _error_page(site, _error_sentence(error), _error_status(error), request, is_part)


def _error_page(site: Site, sentence: str, status: int, request: Request, is_part: bool = False) -> str:
    page = PageReply(
        "error", {"sentence": sentence, "status": status}, "Not found" if status == 404 else "Something is wrong"
    )
    return render_page(site, page, request.url.path, site.clock(), is_part)


async def _answer_missing(site: Site, request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "there is no page at this address", 405: "that cannot be done with this address"}
    return _answer_failure(site, request, words.get(status, "the request cannot be answered"), status)


async def _answer_defect(site: Site, request: Request, error: Exception) -> Response:
    said = f"this should not happen: {type(error).__name__}; please report it, with what you looked at"
    site.warn(f"{said} ({request.url.path}, {_error_place(error)})")
    return _answer_failure(site, request, said, 500)


def _error_place(error: Exception) -> str:
    """Where in our code; nothing of what was being shown."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}" if at is not None else "?"


def _answer_failure(site: Site, request: Request, sentence: str, status: int) -> Response:
    if request.url.path.startswith("/api/"):
        return Response(to_json({"schema": "everturn/error@1", "error": sentence}), status, media_type=_JSON)
    return Response(_error_page(site, sentence, status, request), status, media_type=_HTML)
