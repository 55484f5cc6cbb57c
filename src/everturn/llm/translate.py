"""A history of one provider for another one.

Texts, calls, results and images go over; so do images within results, behind them where the other format has no place for
them there. Ids of calls are written in the way of the new provider, call and result alike. What only the old provider can
read is dropped and said: thoughts with their signatures and sealed contents, blocks of kinds that nobody else has.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, structs

from everturn.llm import ChatMessage, ChatPart
from everturn.llm.pictures import ChatPicture, block_of, pictures_of

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
