"""Pictures in a conversation: those whose bytes are in the record and are of a known kind.

What kind it is, its own first bytes say, not its label. Anything else, an address included, is told in words: a page
loads nothing from elsewhere. A file has its pictures within it, or leaves them out; a page of a running program may ask for
them one by one (`Look.to_picture`), under a name that is a hash of what they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from html import escape
from typing import Any

from msgspec import Struct

from everturn.export.page.look import PageLook
from everturn.export.page.markup import Html, element
from everturn.model.conversation import Block

_DEEPEST = 6
_MOST = 50
_ADDRESS = re.compile(r"data:image/[\w.+-]{1,40};base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_SMALLEST = 32  # characters: less is no picture
_BEGINNINGS = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
_NAMES = ("data", "base64", "url", "image_url", "source", "content", "output", "inlineData", "file", "image")


class PagePicture(Struct, frozen=True):
    """A picture: its kind, and its bytes in base64."""

    kind: str
    data: str

    @property
    def name(self) -> str:
        """A name that only this picture has."""
        return blake2b(self.data.encode(), digest_size=8).hexdigest()


def pictures_html(block: Block | None, look: PageLook, seq: int) -> Iterator[Html]:
    """The pictures of a block of message `seq`, or of what a tool gave back; in words where they cannot be put here."""
    found = pictures_of(() if block is None else (block,))
    for picture in found:
        yield _picture_html(picture, look, seq)
    if block is not None and block.kind == "image" and not found:
        yield element("p", "[a picture that is not in the record]", class_="beside")


def pictures_of(blocks: Iterable[Block]) -> list[PagePicture]:
    """The pictures of some blocks, as many as a page may have."""
    found = list[PagePicture]()
    for block in blocks:
        if block.kind != "image" and block.result is None:
            continue
        for data in _find_pictures(block.data):
            kind = next(media for beginning, media in _BEGINNINGS.items() if data.startswith(beginning))
            found.append(PagePicture(kind, data))
            if len(found) >= _MOST:
                return found
    return found


def _picture_html(picture: PagePicture, look: PageLook, seq: int) -> Html:
    address = f"data:{picture.kind};base64,{picture.data}"
    if look.to_picture is not None and seq >= 0:
        address = look.to_picture(seq, picture.name)
    elif len(picture.data) > look.largest:
        why = "too large to be put here" if look.largest else "left out"
        return element(
            "p", f"[a picture of {len(picture.data) * 3 // 4:,} bytes, {picture.kind}: {why}]", class_="beside"
        )
    alt = "picture from the conversation"
    return Html(f'<img class="picture" src="{escape(address)}" alt="{alt}" loading="lazy">')


def _find_pictures(value: Any, depth: int = 0) -> Iterator[str]:
    """The bytes, in base64, of every picture in a value, wherever formats put them."""
    if isinstance(value, str):
        yield from _find_base64(value)
    elif depth < _DEEPEST:
        inside: list[Any] = []
        if isinstance(value, list):
            inside = [one for one in value if not isinstance(one, str)]
        elif isinstance(value, dict):
            inside = [value[name] for name in _NAMES if name in value]
        for one in inside:
            yield from _find_pictures(one, depth + 1)


def _find_base64(text: str) -> Iterator[str]:
    address = _ADDRESS.match(text)
    data = text[address.end() :] if address else text
    if len(data) >= _SMALLEST and data.startswith(tuple(_BEGINNINGS)):
        data = "".join(data.split())
        if _BASE64.fullmatch(data):
            yield data
