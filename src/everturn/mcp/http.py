"""The server over streamable HTTP: the official SDK speaks the protocol, `server` answers.

It listens on the loopback interface only, at `/mcp`. A request must name this host, and one from a page in a browser must
come from this machine: otherwise any web site could read the archive through a visitor's browser. Other users of the machine
reach the loopback interface too, so a request must carry the key: `Authorization: Bearer KEY`. One thread, which alone reads
the archive, answers all requests.
"""

from __future__ import annotations

import os
import socket
import warnings
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from everturn import __version__
from everturn.errors import EverturnError
from everturn.mcp.archive import McpArchive
from everturn.mcp.rpc import RpcError
from everturn.mcp.server import INSTRUCTIONS, TITLE, McpServer, Peer

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from pydantic import BaseModel

HOST = "127.0.0.1"
_HOST_NAMES = ("127.0.0.1", "localhost")

Handler = Callable[[Any, Any], Awaitable[Any]]


def serve(archive: McpArchive, port: int, say: Callable[[str], None], key: str = "") -> None:
    """Serve until interrupted, with a key only to those who send it. Raises EverturnError when the SDK is not installed, or the port is taken."""
    try:
        import uvicorn
        from mcp.server.lowlevel import Server as _  # noqa: F401 -- installed, and version 2?
    except ImportError as error:
        raise EverturnError(
            "serving over HTTP needs the official MCP SDK (2.3 or newer), which is not installed; "
            "run: pip install 'everturn[mcp]'"
        ) from error
    offers = McpServer(archive)
    try:
        listener = socket.create_server((HOST, port))  # it listens before the address is printed
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise EverturnError(f"port {port} cannot be used: {why}; name another with --port") from error
    port = listener.getsockname()[1]
    with ThreadPoolExecutor(1, "everturn-mcp") as worker:
        app = application(offers, worker, port)
        app = KeyCheck(app, key) if key else app
        say(f"serving http://{HOST}:{port}/mcp; Ctrl-C ends")
        uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on")).run([listener])
        worker.submit(offers.close)


class KeyCheck:
    """The middleware that refuses requests without the key."""

    def __init__(self, app: Any, key: str) -> None:
        self._app, self._expected = app, f"Bearer {key}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Pass the request on, or refuse it."""
        shown = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] != "http" or compare_digest(shown, self._expected):
            await self._app(scope, receive, send)
            return
        body = b"send the key that `everturn mcp --http` has printed: Authorization: Bearer KEY\n"
        head = [(b"content-type", b"text/plain; charset=utf-8"), (b"www-authenticate", b"Bearer")]
        head.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": 401, "headers": head})
        await send({"type": "http.response.body", "body": body})


def application(offers: McpServer, worker: ThreadPoolExecutor, port: int) -> Any:
    from mcp.server.transport_security import TransportSecuritySettings

    hosts = [f"{name}:{port}" for name in _HOST_NAMES]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    return _make_server(offers, worker).streamable_http_app(transport_security=security, host=HOST)


def _make_server(offers: McpServer, worker: ThreadPoolExecutor) -> Server[Any]:
    import mcp_types as types
    from mcp.server.lowlevel import Server

    answered = partial(_make_handler, offers, worker)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about logging levels, which newer protocol versions no longer have
        return Server(
            "everturn",
            version=__version__,
            title=TITLE,
            instructions=INSTRUCTIONS,
            on_list_tools=answered("tools/list", types.ListToolsResult),
            on_call_tool=answered("tools/call", types.CallToolResult),
            on_list_resources=answered("resources/list", types.ListResourcesResult),
            on_list_resource_templates=answered("resources/templates/list", types.ListResourceTemplatesResult),
            on_read_resource=answered("resources/read", types.ReadResourceResult),
            on_list_prompts=answered("prompts/list", types.ListPromptsResult),
            on_get_prompt=answered("prompts/get", types.GetPromptResult),
            on_completion=answered("completion/complete", types.CompleteResult),
            on_set_logging_level=answered("logging/setLevel", types.EmptyResult),
        )


def _make_handler(offers: McpServer, worker: ThreadPoolExecutor, method: str, result: type[BaseModel]) -> Handler:
    """Return the SDK's handler of a method, which answers in the thread of the archive."""
    import asyncio

    from mcp.shared.exceptions import MCPError

    async def answer(context: Any, params: Any) -> Any:
        given = params.model_dump(by_alias=True, exclude_none=True, mode="json") if params is not None else {}
        ask = partial(offers.answer, Peer(), method, given)
        try:
            return result.model_validate(await asyncio.get_running_loop().run_in_executor(worker, ask))
        except RpcError as refused:
            raise MCPError(refused.code, refused.message, refused.data) from refused

    return answer
