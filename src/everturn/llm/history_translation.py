"""A history of one provider for another one.

Texts, calls, results and images go over; so do images within results, behind them where the other format has no place for
them there. Ids of calls are written in the way of the new provider, call and result alike. What only the old provider can
read is dropped and said: thoughts with their signatures and sealed contents, blocks of kinds that nobody else has.

Images as the wire formats hold them: read from one, written for another.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, structs

from everturn.llm.protocol import ChatMessage, ChatPart
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


_PREFIXES = {"anthropic_messages": "toolu_", "chat_completions": "call_", "responses": "call_"}
_KNOWN_PREFIX = re.compile(r"^(toolu_|call_|fc_|functions\.)")
_FITS = re.compile(r"[A-Za-z0-9_-]{1,34}")
_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


class HistoryTranslation(Struct, frozen=True):
    """A history for another wire format, and what could not go with it."""

    messages: tuple[ChatMessage, ...]
    dropped: list[str]  # one sentence for each piece
    ids: dict[str, str]  # new id of a call → the id it had


def translate_history(
    messages: Sequence[ChatMessage], from_wire: str, to_wire: str, nine: bool = False
) -> HistoryTranslation:
    """The history for `to_wire`. Messages that came from neither format are our own and fit everywhere.

    `nine`: ids of nine letters and digits, which is all that some servers of the chat form take.
    """
    if from_wire == to_wire and not nine:
        return HistoryTranslation(tuple(messages), [], {})
    work = _HistoryTranslator(to_wire, nine)
    made = [one for message in messages for one in work.message(message)]
    return HistoryTranslation(tuple(_pair_results(_join_answers(made))), work.dropped, work.ids)


class _HistoryTranslator:
    """One history on its way."""

    def __init__(self, to_wire: str, nine: bool) -> None:
        self._wire, self._nine = to_wire, nine
        self.dropped: list[str] = []
        self.ids: dict[str, str] = {}
        self._given: dict[str, str] = {}  # the id a call had → its new one, as of here

    def message(self, message: ChatMessage) -> Iterator[ChatMessage]:
        """The messages that one becomes: results first, since some formats have them in messages of their own."""
        parts = [made for part in message.parts for made in self._part(part, message)]
        behind = [shown for part in message.parts if part.kind == "result" for shown in self._result_images(part)]
        results = [part for part in parts if part.kind == "result"]
        others = [part for part in parts if part.kind != "result"] + behind
        if results:
            yield ChatMessage("tool", tuple(results))
        if others:
            yield self._made("user" if results else message.role, others)

    def _made(self, role: str, parts: list[ChatPart]) -> ChatMessage:
        """Of our own making, unless there is an image: only a format's own message can hold one."""
        if role in ("system", "developer") and self._wire == "anthropic_messages":
            self.dropped.append("the role of a system message within the history: its words go as the user's")
        role = role if role in ("assistant", "system", "developer") else "user"
        if not any(part.kind == "image" and part.raw is not None for part in parts):
            return ChatMessage(role, tuple(parts))
        raw = None if self._wire == "responses" else {"role": role, "content": []}
        return ChatMessage(role, tuple(parts), wire=self._wire, raw=raw)

    def _part(self, part: ChatPart, message: ChatMessage) -> Iterator[ChatPart]:
        if part.kind == "thinking":
            if part.raw is not None or message.wire:
                self.dropped.append(f"a thought that only {message.wire or 'its provider'} can read")
        elif part.kind == "image":
            yield from self._images(part)
        elif part.kind == "call":
            given = {"text": part.arguments} if isinstance(part.arguments, str) else part.arguments
            yield structs.replace(part, call_id=self._call_id(part.call_id), arguments=given, raw=None)
        elif part.kind == "result":
            call_id = self._given.get(part.call_id, part.call_id)
            yield structs.replace(part, call_id=call_id, text=_result_text(part), raw=None)
        elif part.kind == "text":
            yield structs.replace(part, raw=None)
        else:
            self.dropped.append(
                f"a block of the kind {_raw_kind(part.raw)}, which only {message.wire or 'its format'} knows"
            )

    def _images(self, part: ChatPart) -> Iterator[ChatPart]:
        for shown in pictures_of(part):
            if shown is None:
                self.dropped.append("an image that is stored with its provider")
                yield ChatPart("text", "[image]")
            else:
                yield self._image(shown)

    def _image(self, shown: ChatPicture) -> ChatPart:
        block = block_of(shown, self._wire)
        if self._wire == "responses":
            return ChatPart("image", raw={"type": "message", "role": "user", "content": [block]})
        return ChatPart("image", raw=block)

    def _result_images(self, part: ChatPart) -> Iterator[ChatPart]:
        """The images of a result."""
        for shown in pictures_of(part):
            if shown is None:
                self.dropped.append("an image that is stored with its provider")
            else:
                yield self._image(shown)

    def _call_id(self, old: str) -> str:
        """The new id; a call that uses an id again gets one of its own."""
        number = 0
        while (new := self._new_id(old, number)) in self.ids:
            number += 1
        self.ids[new] = old
        self._given[old] = new
        return new

    def _new_id(self, old: str, number: int) -> str:
        digest = hashlib.sha256(f"{old} {number}".encode("utf-8", "replace")).digest()
        if self._nine:
            return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:9])
        bare = _KNOWN_PREFIX.sub("", old)
        fits = number == 0 and _FITS.fullmatch(bare)
        return _PREFIXES.get(self._wire, "call_") + (bare if fits else digest.hex()[:24])


def _result_text(part: ChatPart) -> str:
    """What a tool gave back, with a word about the images that go behind it."""
    seen = any(shown is not None for shown in pictures_of(part))
    return "\n".join(filter(None, [part.text, "[image, see below]" if seen else ""]))


def _raw_kind(raw: Any) -> str:
    content = raw.get("content") if isinstance(raw, dict) else None
    inner = content[0] if isinstance(content, list) and content and isinstance(content[0], dict) else raw
    return str(inner.get("type", "unknown")) if isinstance(inner, dict) else "unknown"


def _join_answers(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Neighbours of the assistant as one message, so that its calls stand together."""
    made: list[ChatMessage] = []
    for message in messages:
        last = made[-1] if made else None
        if last is not None and last.role == message.role == "assistant" and not (last.wire or message.wire):
            made[-1] = structs.replace(last, parts=last.parts + message.parts)
        else:
            made.append(message)
    return made


def _pair_results(messages: list[ChatMessage]) -> Iterator[ChatMessage]:
    """Each result right behind the answer that called. One format lets them stand further on, the others do not."""
    calls = {part.call_id for message in messages for part in message.parts if part.kind == "call"}
    results: dict[str, list[ChatPart]] = {}
    for message in messages:
        for part in message.parts:
            if part.kind == "result" and part.call_id in calls:
                results.setdefault(part.call_id, []).append(part)
    for message in messages:
        kept = tuple(part for part in message.parts if part.kind != "result" or part.call_id not in calls)
        if kept:
            yield message if len(kept) == len(message.parts) else structs.replace(message, parts=kept)
        found = [one for part in message.parts if part.kind == "call" for one in results.pop(part.call_id, [])]
        if found:
            yield ChatMessage("tool", tuple(found))
