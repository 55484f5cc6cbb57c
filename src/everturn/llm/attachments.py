"""Images and files in any wire format, so that they reach a model of another provider.

Each format has its own block for the same bytes. `attachments` reads the blocks of any of them, and `attachment_block` writes
one for a format, or None if the format has no such block: a file that only its provider can find by an id, audio, a file by
its address where none is accepted. Then a text says what is missing. Text files cross as text.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from everturn.llm.protocol import ChatPart, as_text

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w=.+-]+)*;base64,", re.ASCII)
_PDF = "application/pdf"


class Attachment(Struct, frozen=True):
    """An image or a file: its bytes in base64, or its address."""

    kind: str  # image | file
    media_type: str = ""
    data: str = ""  # base64
    url: str = ""
    name: str = ""
    text: str = ""  # of a text file

    @property
    def note(self) -> str:
        """Return the text that stands for it where it cannot be sent."""
        return f"[{' '.join(filter(None, [self.kind, self.name, self.url]))}]"


def attachments(part: ChatPart) -> list[Attachment]:
    """Return the images and files of a part, of a result's content too."""
    raw = part.raw
    if part.kind == "result":
        raw = raw.get("content", raw.get("output")) if isinstance(raw, dict) else raw
    elif part.kind not in ("image", "opaque"):
        return []
    elif isinstance(raw, dict) and isinstance(raw.get("content"), list):  # an item with only this block
        raw = raw["content"]
    return list(_read_blocks(raw if isinstance(raw, list) else [raw]))


def attachment_block(wire: str, one: Attachment) -> dict[str, Any]:
    """Return the block of a format for an image or file; a text block if it has none."""
    texts = {"anthropic_messages": "text", "chat_completions": "text", "responses": "input_text"}
    if one.text:
        return {"type": texts[wire], "text": "\n".join(filter(None, [one.name and f"[file {one.name}]", one.text]))}
    block = _WRITE[wire](one) if one.data or one.url else None
    return block or {"type": texts[wire], "text": one.note}


def _read_blocks(blocks: list[Any]) -> Iterator[Attachment]:
    for block in blocks:
        read = _READ.get(as_text(block.get("type"))) if isinstance(block, Mapping) else None
        if read is not None:
            yield read(block)


def _member(block: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = block.get(name)
    return value if isinstance(value, Mapping) else {}


def _from_address(kind: str, address: str, name: str = "") -> Attachment:
    """Read an address, which may hold the bytes itself."""
    if (head := _DATA.match(address)) is None:
        return Attachment(kind, url=address, name=name)
    return _with_text(Attachment(kind, head[1] or "", address[head.end() :], name=name))


def _with_text(one: Attachment) -> Attachment:
    if one.kind != "file" or not one.media_type.startswith("text/"):
        return one
    try:
        text = b64decode(one.data).decode()
    except (binascii.Error, UnicodeDecodeError):
        return one
    return Attachment("file", one.media_type, name=one.name, text=text)


def _read_source(kind: str, block: Mapping[str, Any]) -> Attachment:
    source, name = _member(block, "source"), as_text(block.get("title"))
    if source.get("type") == "text":
        return Attachment(kind, as_text(source.get("media_type")), name=name, text=as_text(source.get("data")))
    return Attachment(
        kind, as_text(source.get("media_type")), as_text(source.get("data")), as_text(source.get("url")), name
    )


def _read_file(block: Mapping[str, Any]) -> Attachment:
    file = _member(block, "file")
    return _from_address("file", as_text(file.get("file_data")), as_text(file.get("filename")))


def _read_input_file(block: Mapping[str, Any]) -> Attachment:
    address = as_text(block.get("file_data")) or as_text(block.get("file_url"))
    return _from_address("file", address, as_text(block.get("filename")))


_READ: dict[str, Callable[[Mapping[str, Any]], Attachment]] = {
    "image": lambda block: _read_source("image", block),
    "document": lambda block: _read_source("file", block),
    "image_url": lambda block: _from_address("image", as_text(_member(block, "image_url").get("url"))),
    "file": _read_file,
    "input_image": lambda block: _from_address("image", as_text(block.get("image_url"))),
    "input_file": _read_input_file,
    "input_audio": lambda block: Attachment("audio"),
}


def _address(one: Attachment) -> str:
    default = "image/png" if one.kind == "image" else _PDF
    return one.url or f"data:{one.media_type or default};base64,{one.data}"


def _messages_block(one: Attachment) -> dict[str, Any] | None:
    if one.kind == "file" and one.data and one.media_type not in ("", _PDF):
        return None
    default = "image/png" if one.kind == "image" else _PDF
    source = (
        {"type": "base64", "media_type": one.media_type or default, "data": one.data}
        if one.data
        else {"type": "url", "url": one.url}
    )
    title = {"title": one.name} if one.name and one.kind == "file" else {}
    return {"type": "image" if one.kind == "image" else "document", "source": source, **title}


def _chat_block(one: Attachment) -> dict[str, Any] | None:
    if one.kind == "image":
        return {"type": "image_url", "image_url": {"url": _address(one)}}
    name = one.name or "file.pdf"
    return {"type": "file", "file": {"filename": name, "file_data": _address(one)}} if one.data else None


def _responses_block(one: Attachment) -> dict[str, Any] | None:
    if one.kind == "image":
        return {"type": "input_image", "image_url": _address(one), "detail": "auto"}
    if one.url:
        return {"type": "input_file", "file_url": one.url}
    return {"type": "input_file", "filename": one.name or "file.pdf", "file_data": _address(one)}


_WRITE = {"anthropic_messages": _messages_block, "chat_completions": _chat_block, "responses": _responses_block}
