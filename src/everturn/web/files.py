"""The few files that are served as they are. They are read once, by name: no path is ever put together from a request."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from importlib import resources

from msgspec import Struct

_MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".ico": "image/x-icon",
}


class StaticFile(Struct, frozen=True):
    """A file as it goes out."""

    kind: str
    data: bytes
    tag: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """Every file by its name."""
    found = {}
    for entry in (resources.files("everturn.web") / "static").iterdir():
        ending = entry.name[entry.name.rfind(".") :]
        if ending in _MEDIA_TYPES:
            found[entry.name] = _make_file(_MEDIA_TYPES[ending], entry.read_bytes())
    found["page.css"] = _make_file(_MEDIA_TYPES[".css"], _page_style().encode())
    return found


def _make_file(kind: str, data: bytes) -> StaticFile:
    return StaticFile(kind, data, f'"{blake2b(data, digest_size=8).hexdigest()}"')


def _page_style() -> str:
    """How a conversation looks: the same as in an exported file."""
    from everturn.export.page import STYLE

    return STYLE
