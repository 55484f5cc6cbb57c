"""The few files that are served as they are. They are read once, by name: no path is ever put together from a request."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from importlib import resources

from msgspec import Struct

_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ico": "image/x-icon",
}


class File(Struct, frozen=True):
    """A file as it goes out."""

    kind: str
    data: bytes
    tag: str


@cache
def files() -> Mapping[str, File]:
    """Every file by its name."""
    found = {}
    for entry in (resources.files("everturn.web") / "static").iterdir():
        ending = entry.name[entry.name.rfind(".") :]
        if ending in _KINDS:
            found[entry.name] = _file(_KINDS[ending], entry.read_bytes())
    found["page.css"] = _file(_KINDS[".css"], _page_style().encode())
    return found


def _file(kind: str, data: bytes) -> File:
    return File(kind, data, f'"{blake2b(data, digest_size=8).hexdigest()}"')


def _page_style() -> str:
    """How a conversation looks: the same as in an exported file."""
    from everturn.export.page import STYLE

    return STYLE
