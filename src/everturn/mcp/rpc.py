"""JSON-RPC 2.0: bytes to requests, results and errors to bytes.

Invalid input from a client is raised as `RpcError`, which has an error code and becomes the answer.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002

Id = str | int | float | None


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: Any = None, id: Id = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data, self.id = code, message, data, id


class RpcRequest(Struct, frozen=True):
    """A request, or a notification, which has no id and gets no answer."""

    method: str
    params: dict[str, Any]
    id: Id = None

    @property
    def is_notification(self) -> bool:
        """Whether the client expects no answer."""
        return self.id is None


def decode(line: bytes) -> Any:
    """Decode the JSON of a line. Raises RpcError."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        import json  # msgspec refuses half a surrogate pair, which clients send when they cut text

        try:
            return json.loads(line.decode("utf-8"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise RpcError(PARSE_ERROR, "this line is not JSON") from error


def read_request(message: Any) -> RpcRequest | None:
    """Return a request or notification; None for a response, as we send no requests. Raises RpcError."""
    if not isinstance(message, dict):
        raise RpcError(INVALID_REQUEST, "a message is a JSON object")
    id, method, params = _read_id(message), message.get("method"), message.get("params", {})
    if message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, 'a message has "jsonrpc": "2.0"', id=id)
    if "method" not in message and ("result" in message or "error" in message):
        return None
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "a method is a string", id=id)
    if not isinstance(params, dict):
        if id is None:
            return None  # an invalid notification: the client expects no answer
        raise RpcError(INVALID_PARAMS, "params is a JSON object", id=id)
    return RpcRequest(method, params, id)


def _read_id(message: dict[str, Any]) -> Id:
    """Return the id, None without one. Raises RpcError for an invalid id."""
    id = message.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int | float | None):
        raise RpcError(INVALID_REQUEST, "an id is a string or a number")
    if id is None and "id" in message and "method" in message:
        raise RpcError(INVALID_REQUEST, "the id of a request is not null")
    return id


def encode_success(id: Id, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def encode_failure(id: Id, refused: RpcError) -> dict[str, Any]:
    error: dict[str, Any] = {"code": refused.code, "message": refused.message}
    if refused.data is not None:
        error["data"] = refused.data
    return {"jsonrpc": "2.0", "id": id, "error": error}


def encode(message: Any) -> bytes:
    try:
        return msgspec.json.encode(message) + b"\n"
    except (UnicodeEncodeError, OverflowError):  # an id with half a surrogate pair, or of very many digits
        import json

        return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def show_client_word(text: str) -> str:
    """Return text of the client, safe to repeat in an answer."""
    from everturn.text.printable import one_line

    return repr(one_line(text, 80))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
