"""Images as the wire formats hold them: read from one, written for another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from everturn.llm import ChatPart
from everturn.llm.wire import word

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.S)


class ChatPicture(Struct, frozen=True):
    """An image: its bytes in base64 with their type, or where it is."""

    media: str = ""
    data: str = ""
    url: str = ""

    @property
    def address(self) -> str:
        """Where it is, or all of it as an address."""
        return self.url or f"data:{self.media};base64,{self.data}"


def picture(block: Any) -> ChatPicture | None:
    """The image in a block of any format; None when there is none that others could read, such as one by a file's id."""
    if not isinstance(block, dict):
        return None
    source, linked = block.get("source"), block.get("image_url")
    if block.get("type") == "image" and isinstance(source, dict):
        if source.get("type") == "base64":
            return ChatPicture(word(source.get("media_type")), word(source.get("data")))
        return ChatPicture(url=word(source.get("url"))) if word(source.get("url")) else None
    if block.get("type") in ("image_url", "input_image"):
        url = word(linked.get("url")) if isinstance(linked, dict) else word(linked)
        found = _DATA.fullmatch(url)
        return ChatPicture(found[1], found[2]) if found else ChatPicture(url=url) if url else None
    return None


def block_of(shown: ChatPicture, wire: str) -> dict[str, Any]:
    """The block for an image."""
    if wire == "anthropic_messages":
        base64 = {"type": "base64", "media_type": shown.media, "data": shown.data}
        return {"type": "image", "source": {"type": "url", "url": shown.url} if shown.url else base64}
    if wire == "responses":
        return {"type": "input_image", "image_url": shown.address, "detail": "auto"}
    return {"type": "image_url", "image_url": {"url": shown.address}}


def pictures_of(part: ChatPart) -> Iterator[ChatPicture | None]:
    """The images of a part: itself, or those in what a tool gave back. None for each that cannot be read."""
    raw = part.raw if isinstance(part.raw, dict) else {}
    content = raw.get("content", raw.get("output"))
    blocks = content if isinstance(content, list) else []
    if part.kind == "image":
        yield picture(blocks[0] if blocks else raw)
    elif part.kind == "result":
        for block in blocks:
            if isinstance(block, dict) and block.get("type") in ("image", "image_url", "input_image"):
                yield picture(block)
