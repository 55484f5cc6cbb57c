"""Pictures in a conversation: those whose bytes are in the record and are of a known kind.

What kind it is, its own first bytes say, not its label. Anything else, an address included, is told in words: a page
loads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from everturn.export.page.markup import Html, element
from everturn.model.conversation import Block

_DEEPEST = 6
_MOST = 50
_ADDRESS = re.compile(r"data:image/[\w.+-]{1,40};base64,")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_SMALLEST = 32  # characters: less is no picture
_BEGINNINGS = {"iVBORw0KGgo": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
_NAMES = ("data", "base64", "url", "image_url", "source", "content", "output", "inlineData", "file", "image")


def pictures_html(block: Block | None, largest: int) -> Iterator[Html]:
    """The pictures of a block, or of what a tool gave back; in words where they are larger than `largest`."""
    if block is None or (block.kind != "image" and block.result is None):
        return
    is_told = False
    for number, data in enumerate(_found(block.data)):
        if number >= _MOST:
            break
        is_told = True
        yield _picture(data, largest)
    if block.kind == "image" and not is_told:
        yield element("p", "[a picture that is not in the record]", class_="beside")


def _picture(data: str, largest: int) -> Html:
    kind = next(media for beginning, media in _BEGINNINGS.items() if data.startswith(beginning))
    if len(data) > largest:
        return element(
            "p", f"[a picture of {len(data) * 3 // 4:,} bytes, {kind}: too large to be put here]", class_="beside"
        )
    return Html(
        f'<img class="picture" src="data:{kind};base64,{data}" alt="picture from the conversation" loading="lazy">'
    )


def _found(value: Any, depth: int = 0) -> Iterator[str]:
    """The bytes, in base64, of every picture in a value, wherever formats put them."""
    if isinstance(value, str):
        yield from _bytes_in(value)
    elif depth < _DEEPEST:
        inside: list[Any] = []
        if isinstance(value, list):
            inside = [one for one in value if not isinstance(one, str)]
        elif isinstance(value, dict):
            inside = [value[name] for name in _NAMES if name in value]
        for one in inside:
            yield from _found(one, depth + 1)


def _bytes_in(text: str) -> Iterator[str]:
    address = _ADDRESS.match(text)
    data = text[address.end() :] if address else text
    if len(data) >= _SMALLEST and data.startswith(tuple(_BEGINNINGS)):
        data = "".join(data.split())
        if _BASE64.fullmatch(data):
            yield data
