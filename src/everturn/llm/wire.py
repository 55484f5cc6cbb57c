"""What a wire format is: the words of one provider's interface, without any input or output.

A format is one module with the members of `Wire`: where requests go, what a `ModelRequest` looks like there, how an answer is
read, whole or as a stream of events. `http` does the talking. What a provider sent is kept in `raw`, so that
`history(message(x)) == [x]` for every message `x` of that format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from everturn.llm.protocol import ChatMessage, ChatPart, Delta, ModelRequest, Reply


class GarbledAnswer(ValueError):
    """An answer that is not in the format; the text says what is wrong with it, never what it says."""


class WireFailure(Struct, frozen=True):
    """What a server said instead of an answer."""

    kind: str  # its own word, such as overloaded_error
    says: str  # its own sentence
    passes: bool  # asking again later may help


class StreamFailed(Exception):
    """A failure in the middle of a stream."""

    def __init__(self, failure: WireFailure) -> None:
        self.failure = failure
        super().__init__(failure.kind)


class ReplyAssembly(Protocol):
    """Puts a streamed answer together."""

    is_done: bool  # the format's own end has come
    has_begun: bool  # something of the answer has come

    def feed(self, data: str) -> list[Delta]:
        """The data of one event. Raises `GarbledAnswer` and `StreamFailed`."""

    def reply(self) -> Reply:
        """The answer so far; its `stop` is `cut` when the end has not come."""


class Wire(Protocol):
    """One wire format: a module with these members."""

    WIRE: str
    PATH: str  # behind the base address

    def headers(self, key: str) -> dict[str, str]:
        """What goes with every request; `key` may be empty."""

    def body(self, request: ModelRequest, stream: bool = False) -> dict[str, Any]:
        """The request as it is sent."""

    def message(self, wire: Mapping[str, Any]) -> ChatMessage:
        """A message of a history."""

    def history(self, message: ChatMessage) -> list[dict[str, Any]]:
        """The messages that one becomes: itself where it came from this format."""

    def read(self, response: Any) -> Reply:
        """A whole answer. Raises `GarbledAnswer`."""

    def failure(self, response: Any) -> WireFailure | None:
        """What the body of a failed request says, when it says something."""

    def assembly(self) -> ReplyAssembly:
        """For one streamed answer."""


def decode_json(data: str | bytes) -> dict[str, Any]:
    """A JSON object, or `GarbledAnswer`."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = _decode_forgivingly(data)
    if not isinstance(value, dict):
        raise GarbledAnswer("it is no JSON object")
    return value


def arguments(text: str) -> Any:
    """The arguments of a call: the object, or the text as it came when it is none. No text means no arguments."""
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def encode_json(value: Any) -> str:
    """The arguments of a call as text."""
    given = {} if value is None else value
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, separators=(",", ":"))


def drop_lone_surrogates(value: Any) -> Any:
    """A value without halves of surrogate pairs, which cannot be sent or stored."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [drop_lone_surrogates(one) for one in value]
    return (
        {drop_lone_surrogates(name): drop_lone_surrogates(one) for name, one in value.items()}
        if isinstance(value, dict)
        else value
    )


def number(value: Any) -> int:
    """A count that a server gave, or 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def word(value: Any) -> str:
    """A text that a server gave, or nothing."""
    return value if isinstance(value, str) else ""


def fit_id(call_id: str) -> str:
    """An id of another provider's call, in the characters that all take."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id) or "call"


def part_as_text(part: ChatPart) -> str:
    """A part as text, for a format that cannot hold it; nothing for what only its own provider can read."""
    if part.kind in ("text", "result"):
        return part.text
    return "[image]" if part.kind == "image" else ""


def deltas(reply: Reply) -> list[Delta]:
    """A whole answer as if it had been streamed."""
    pieces = [
        Delta(part.kind, encode_json(part.arguments) if part.kind == "call" else part.text, part.call_id, part.name)
        for part in reply.message.parts
        if part.kind in ("text", "thinking", "call")
    ]
    return [*pieces, Delta("end", reply=reply)]


def _decode_forgivingly(data: str | bytes) -> Any:
    """Some servers cut an emoji in two between events: half of it is no reason to lose the answer."""
    try:
        return drop_lone_surrogates(json.loads(data))
    except (ValueError, RecursionError):
        raise GarbledAnswer("it is no JSON") from None
