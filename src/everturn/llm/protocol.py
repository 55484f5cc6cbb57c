"""Talking to models: one neutral form of a conversation, one protocol, one file for each wire format.

A `ModelRequest` is what is asked, a `Reply` what came back, a `Receipt` what it cost. Everything a provider sent is kept
verbatim in `Part.raw`, also what this version does not know: a history goes back to the provider that made it unchanged.
Nothing here is called unless the user named a backend. Secrets are taken out by the caller's `clean` before anything is
sent (`everturn.llm.asker`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct


class ChatPart(Struct, frozen=True):
    """One piece of a message."""

    kind: str  # text | thinking | call | result | image | opaque
    text: str = ""  # of text and thinking; what a tool gave back
    call_id: str = ""  # of call and result
    name: str = ""  # of the tool
    arguments: Any = None  # of a call: the decoded object, or the text as it came when it is no JSON object
    is_error: bool = False  # of a result
    raw: Any = None  # the provider's own block, verbatim; None for what did not come from a provider


class ChatMessage(Struct, frozen=True):
    """One message of a conversation with a model."""

    role: str  # system | user | assistant | tool
    parts: tuple[ChatPart, ...]
    id: str = ""  # the provider's
    wire: str = ""  # which wire format `raw` of the parts is in
    raw: Any = None  # members of the provider's message beside its parts, verbatim


class ToolSpec(Struct, frozen=True):
    """What a model may call."""

    name: str
    description: str
    parameters: dict[str, Any]  # JSON schema of the arguments


class ModelRequest(Struct, frozen=True):
    """What is asked of a model."""

    messages: tuple[ChatMessage, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    max_tokens: int = 4096
    temperature: float | None = None
    extra: dict[str, Any] = {}  # members of the wire request that are passed on as they are


class ReplyTokens(Struct, frozen=True):
    """Tokens of one response, as the provider counts them; `source` says whether it was the provider."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    source: str = "api"  # api | estimate


class Reply(Struct, frozen=True):
    """What came back."""

    message: ChatMessage
    stop: str = "end"  # end | calls | length | refusal | cut (the stream broke off)
    usage: ReplyTokens = ReplyTokens()
    model: str = ""
    tries: int = 1

    @property
    def text(self) -> str:
        """The words of the answer, without what the model thought."""
        return "".join(part.text for part in self.message.parts if part.kind == "text")

    @property
    def calls(self) -> tuple[ChatPart, ...]:
        """The tools it wants to call."""
        return tuple(part for part in self.message.parts if part.kind == "call")


class Delta(Struct, frozen=True):
    """A piece of a streamed reply. The last one carries the whole `reply`."""

    kind: str  # text | thinking | call | end
    text: str = ""
    call_id: str = ""
    name: str = ""
    reply: Reply | None = None


class Backend(Protocol):
    """A model that can be asked."""

    name: str  # as in the config
    model: str
    window: int  # tokens that fit into one request, 0 where nobody said
    max_tokens: int  # of one answer, 0 where nobody said
    takes_tools: bool  # whether `Request.tools` mean something to it

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        """The reply piece by piece. Raises `errors.ModelError` and its kinds; closing the iterator stops the request."""

    def ask(self, request: ModelRequest) -> Reply:
        """The whole reply."""


class Receipt(Struct, frozen=True):
    """What one request cost, kept with what was made from it."""

    backend: str
    model: str
    purpose: str
    usage: ReplyTokens
    tries: int
    at: int  # ms UTC
    ms: int
    stop: str  # of the reply, or why there is none: unreachable | busy | refused | garbled | closed


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
