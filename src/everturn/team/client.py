"""The client of a team's server: requests with a token, errors as one sentence, and the login of this machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from http.client import HTTPException
from pathlib import Path
from time import sleep
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec
from msgspec import Struct

from everturn.errors import Busy, EverturnError, NothingFound, UsageError
from everturn.model.conversation import prepared

_TIMEOUT = 120  # seconds
_PART = 32 << 10  # bytes that are sent at once if there is a limit
_LOCAL = ("127.0.0.1", "localhost", "::1")


class Login(Struct, frozen=True):
    """The server of this machine's user, and the token for it."""

    server: str
    token: str


def save_login(path: Path, login: Login) -> None:
    """Write the login, readable by its owner only. Raises UsageError for an address without TLS."""
    _check_address(login.server)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(msgspec.json.encode(login))


def load_login(path: Path) -> Login:
    """Return the login. Raises UsageError without one."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=prepared(Login))
    except (OSError, msgspec.DecodeError) as error:
        raise UsageError("you are not logged in to a team's server; run: everturn team login URL") from error


def _check_address(server: str) -> None:
    parts = urlsplit(server)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{server!r} is not the address of a server; it looks like https://everturn.example.com")
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        raise UsageError(f"{server} is not encrypted: the token would be readable on the way; use https://")


class TeamClient:
    """Requests to one server. A redirect is not followed: it would take the token elsewhere.

    `limit` is how many bytes a second may be sent; 0 is no limit.
    """

    def __init__(self, login: Login, limit: int = 0, pause: Callable[[float], None] = sleep) -> None:
        _check_address(login.server)
        self._login, self._limit, self._pause = login, limit, pause
        self._opener = build_opener(_NoRedirect)

    def get(self, path: str, **given: Any) -> dict[str, Any]:
        query = urlencode({name: value for name, value in given.items() if value not in ("", None)})
        return self._send(Request(self.address(f"{path}?{query}" if query else path)))  # noqa: S310 -- checked

    def get_bytes(self, path: str, **given: Any) -> bytes:
        query = urlencode(given)
        return self._receive(Request(self.address(f"{path}?{query}" if query else path)))  # noqa: S310 -- checked

    def post(self, path: str, body: bytes) -> dict[str, Any]:
        data = body if not self._limit else self._send_slowly(body)
        request = Request(self.address(path), data=data, method="POST")  # noqa: S310 -- checked
        request.add_header("Content-Length", str(len(body)))
        return self._send(request)

    def _send_slowly(self, body: bytes) -> Iterator[bytes]:
        """Yield the body in parts, each followed by a pause that is as long as the part may take."""
        size = max(min(_PART, self._limit // 4), 1)
        for at in range(0, len(body), size):
            part = body[at : at + size]
            yield part
            self._pause(len(part) / self._limit)

    def address(self, path: str) -> str:
        """Return the whole address of a path on the server."""
        return self._login.server.rstrip("/") + path

    def _send(self, request: Request) -> dict[str, Any]:
        data = self._receive(request)
        try:
            answer: dict[str, Any] = json.loads(data or b"{}")
        except ValueError as error:
            raise EverturnError(
                f"{self._login.server} does not answer as a team's server; check its address"
            ) from error
        return answer

    def _receive(self, request: Request) -> bytes:
        request.add_header("Authorization", f"Bearer {self._login.token}")
        request.add_header("Content-Type", "application/octet-stream")
        try:
            with self._opener.open(request, timeout=_TIMEOUT) as response:
                data: bytes = response.read()
                return data
        except HTTPError as error:
            raise _refusal(self._login.server, error) from error
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise EverturnError(f"{self._login.server} cannot be reached: {reason}; run it again later") from error


class _NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **given: Any) -> None:
        return None


def _refusal(server: str, error: HTTPError) -> EverturnError:
    try:
        why = str(json.loads(error.read())["error"])
    except (ValueError, KeyError, TypeError, OSError):
        why = f"it answers with status {error.code}"
    if error.code == 503:
        return Busy(server)
    kind = {404: NothingFound, 400: UsageError}.get(error.code, EverturnError)
    return kind(f"{server}: {why}")


def repository_target(folder: Path, target: str) -> tuple[str, str]:
    """Return the project of a folder, and a target of `why` with the path of its file from the root of the repository."""
    from everturn.attribution.job import split_target
    from everturn.attribution.repository import Repository
    from everturn.team.upload import repository_identity

    name, lines = split_target(target, folder)
    path = folder / name
    if not path.is_file():
        return repository_identity(str(folder)), target
    try:
        with Repository(path.parent) as repository:
            inner = path.resolve().relative_to((repository.root or path.parent).resolve()).as_posix()
    except (UsageError, ValueError):
        return "", target
    return repository_identity(str(path.parent)), inner + (f":{lines[0]}-{lines[1]}" if lines else "")
