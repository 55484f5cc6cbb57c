"""Pictures that providers refuse: one of them in the history, and every later request of the session fails.

A repaired session has a sentence in place of such a picture; the archive keeps the original.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Block, Message
from everturn.sources.toolkit.agent_program import NativePicture, pictures

_MOST_CHARACTERS = 5 << 20  # of Base64, for each picture
_MOST_PIXELS = 8_000  # on each side
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"RIFF")
_LEFT_OUT = "[A picture was left out here, because providers refuse it: {}. The archive has the original.]"


def why_refused(shown: NativePicture) -> str:
    """Return why providers refuse a picture; "" if nothing is known against it."""
    if len(shown.data) > _MOST_CHARACTERS:
        return f"it has {len(shown.data) / (1 << 20):.1f} MB, more than 5"
    try:
        data = base64.b64decode(shown.data, validate=True)
    except (binascii.Error, ValueError):
        return "it is no Base64"
    if not data.startswith(_SIGNATURES) or (data[:4] == b"RIFF" and data[8:12] != b"WEBP"):
        return "its bytes are no picture"
    if data.startswith(_SIGNATURES[0]):
        sides = [int.from_bytes(data[at : at + 4], "big") for at in (16, 20)]
        if b"IEND" not in data[-64:] or 0 in sides:
            return "it breaks off"
        if max(sides) > _MOST_PIXELS:
            return f"it is {sides[0]:,} x {sides[1]:,} pixels large"
    return ""


def refused_pictures(message: Message) -> Iterator[str]:
    """Yield why each refused picture of a message is refused."""
    for block in message.blocks:
        yield from (why for shown in pictures(block) if shown is not None and (why := why_refused(shown)))


def without_refused(message: Message) -> Message:
    """Return a message with a sentence in place of each refused picture."""
    if not any(refused_pictures(message)):
        return message
    return replace(message, blocks=tuple(map(_mend, message.blocks)))


def _mend(block: Block) -> Block:
    refused = [why for shown in pictures(block) if shown is not None and (why := why_refused(shown))]
    if not refused:
        return block
    told = "\n".join(map(_LEFT_OUT.format, refused))
    if block.kind == "image":
        return replace(block, kind="text", text=told, data=None)
    return replace(block, text="\n".join(filter(None, (block.text, told))), data=_without_parts(block))


def _without_parts(block: Block) -> Any:
    """Return the data of a result without its refused pictures."""

    def stays(part: Any) -> bool:
        own = replace(block, kind="image", data=part)
        return not any(shown is not None and why_refused(shown) for shown in pictures(own))

    data = dict(block.data)
    for key in ("content", "output", "result"):
        if isinstance(data.get(key), list):
            data[key] = [part for part in data[key] if stays(part)]
    return data
