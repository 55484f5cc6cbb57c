"""The neutral form of a conversation with a model, the `Backend` protocol, and the contract of a wire format.

A `ModelRequest` goes to a backend, a `Reply` comes back, and a `Receipt` records the cost. Everything a provider sent stays
verbatim in `ChatPart.raw`, including members this version does not know, so a history goes back to its provider unchanged.
Nothing here runs unless the user configured a backend. `everturn.llm.asker` removes secrets before anything is sent.

A wire format is one module with the members of `Wire`. It performs no input or output; `http_backend` does. For every
message `x` of a format, `history(message(x)) == [x]`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct, structs


class ChatPart(Struct, frozen=True):
    """One content block of a message."""

    kind: str  # text | thinking | call | result | image | opaque
    text: str = ""  # of text and thinking; the output of a result
    call_id: str = ""  # of call and result
    name: str = ""  # of the tool
    arguments: Any = None  # of a call: the decoded object, or the original text if it is no JSON object
    is_error: bool = False  # of a result
    raw: Any = None  # the provider's block, verbatim; None for parts of our own


class ChatMessage(Struct, frozen=True):
    """One message of a conversation with a model."""

    role: str  # system | user | assistant | tool
    parts: tuple[ChatPart, ...]
    id: str = ""  # the provider's
    wire: str = ""  # which wire format `raw` of the parts is in
    raw: Any = None  # the other members of the provider's message, verbatim


class ToolSpec(Struct, frozen=True):
    """A tool that a model may call."""

    name: str
    description: str
    parameters: dict[str, Any]  # JSON schema of the arguments


class ModelRequest(Struct, frozen=True):
    """A request to a model."""

    messages: tuple[ChatMessage, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    model: str = ""
    max_tokens: int = 4096
    temperature: float | None = None
    extra: dict[str, Any] = {}  # members of the wire request that are passed on as they are


class ReplyTokens(Struct, frozen=True):
    """Token usage of one response. `source` says whether the provider counted it."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    source: str = "api"  # api | estimate


def sum_usage(used: Iterable[ReplyTokens], source: str = "api") -> ReplyTokens:
    """Return the tokens of several responses together."""
    input_, output, cache_read, cache_write, _ = zip(*map(structs.astuple, [ReplyTokens(), *used]), strict=True)
    return ReplyTokens(sum(input_), sum(output), sum(cache_read), sum(cache_write), source)


class Reply(Struct, frozen=True):
    """The reply of a model."""

    message: ChatMessage
    stop: str = "end"  # end | calls | length | refusal | pause (ask again to go on) | cut (the stream broke off)
    usage: ReplyTokens = ReplyTokens()
    model: str = ""
    tries: int = 1
    agent: str = ""  # the name of the agent that answered, if it is not just the model
    agent_path: str = ""  # the file it was loaded from

    @property
    def text(self) -> str:
        """Return the text of the answer, without the thoughts."""
        return "".join(part.text for part in self.message.parts if part.kind == "text")

    @property
    def calls(self) -> tuple[ChatPart, ...]:
        """Return the tool calls of the answer."""
        return tuple(part for part in self.message.parts if part.kind == "call")


class Delta(Struct, frozen=True):
    """One part of a streamed reply. The last one carries the whole `reply`."""

    kind: str  # text | thinking | call | end
    text: str = ""
    call_id: str = ""
    name: str = ""
    reply: Reply | None = None


class Backend(Protocol):
    """A model that answers requests."""

    name: str  # as in the config
    model: str
    window: int  # tokens that fit into one request; 0: unknown
    max_tokens: int  # of one answer; 0: unknown
    takes_tools: bool  # whether it can use `ModelRequest.tools`

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        """Stream the reply. Raise `errors.ModelError` or a subclass. Closing the iterator stops the request."""

    def ask(self, request: ModelRequest) -> Reply:
        """Return the whole reply."""


class Receipt(Struct, frozen=True):
    """The cost of one request, kept with its result."""

    backend: str
    model: str
    purpose: str
    usage: ReplyTokens
    tries: int
    at: int  # ms UTC
    ms: int
    stop: str  # of the reply, or the failure: unreachable | busy | refused | garbled | closed


#: A rule that a request breaks: name, location such as messages.3, sentence.
BrokenRule = tuple[str, str, str]


class GarbledAnswer(ValueError):
    """An answer that is not in the format. The message names the mistake and never quotes the answer."""


class WireFailure(Struct, frozen=True):
    """An error that a server sent instead of an answer."""

    kind: str  # the server's code, such as overloaded_error
    says: str  # the server's message
    passes: bool  # a retry may help


class StreamFailed(Exception):
    """A failure in the middle of a stream."""

    def __init__(self, failure: WireFailure) -> None:
        self.failure = failure
        super().__init__(failure.kind)


class ReplyAssembly(Protocol):
    """Assembles a streamed answer."""

    is_done: bool  # the format's end marker has arrived
    has_begun: bool  # part of the answer has arrived

    def feed(self, data: str) -> list[Delta]:
        """Take the data of one event. Raise `GarbledAnswer` or `StreamFailed`."""

    def reply(self) -> Reply:
        """Return the answer so far. Its `stop` is `cut` until the end has arrived."""


class Wire(Protocol):
    """One wire format: a module with these members."""

    WIRE: str
    PATH: str  # appended to the base address

    def headers(self, key: str) -> dict[str, str]:
        """Return the headers of every request. `key` may be empty."""

    def body(self, request: ModelRequest, stream: bool = False) -> dict[str, Any]:
        """Return the request as JSON."""

    def message(self, wire: Mapping[str, Any]) -> ChatMessage:
        """Read a message of a history."""

    def history(self, message: ChatMessage) -> list[dict[str, Any]]:
        """Return the wire messages of one message: itself if it came from this format."""

    def read(self, response: Any) -> Reply:
        """Read a whole answer. Raise `GarbledAnswer`."""

    def failure(self, response: Any) -> WireFailure | None:
        """Return the error in the body of a failed request, or None."""

    def assembly(self) -> ReplyAssembly:
        """Return an assembly for one streamed answer."""


def decode_json(data: str | bytes) -> dict[str, Any]:
    """Decode a JSON object. Raise `GarbledAnswer`."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = _decode_forgivingly(data)
    if not isinstance(value, dict):
        raise GarbledAnswer("it is not a JSON object")
    return value


def decode_arguments(text: str) -> Any:
    """Decode the arguments of a call. Return text that is no JSON object as it came, and {} for no text."""
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def encode_json(value: Any) -> str:
    """Encode the arguments of a call as text."""
    value = {} if value is None else value
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def drop_lone_surrogates(value: Any) -> Any:
    """Replace lone surrogates in a value: they can be neither sent nor stored."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [drop_lone_surrogates(one) for one in value]
    if isinstance(value, dict):
        return {drop_lone_surrogates(name): drop_lone_surrogates(one) for name, one in value.items()}
    return value


def object_member(event: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a member of an event that must be an object. Raise `GarbledAnswer`."""
    value = event.get(name)
    if not isinstance(value, dict):
        raise GarbledAnswer(f"an event has no {name}")
    return value


def event_index(event: dict[str, Any], name: str) -> int:
    """Return the index of what an event belongs to. Raise `GarbledAnswer`."""
    index = event.get(name)
    if not isinstance(index, int) or index < 0:
        raise GarbledAnswer(f"an event has no {name}")
    return index


def join_values(before: Any, value: Any) -> Any:
    """Return a streamed member together with what came before: texts and lists grow, others are replaced."""
    joins = isinstance(value, str | list) and type(before) is type(value)
    return before + value if joins else value


def as_count(value: Any) -> int:
    """Return a count from a server, or 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def as_text(value: Any) -> str:
    """Return a text from a server, or ""."""
    return value if isinstance(value, str) else ""


def fit_id(call_id: str) -> str:
    """Return the id of another provider's call in characters that every provider accepts."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", call_id) or "call"


def part_as_text(part: ChatPart) -> str:
    """Return a part as text, for a format that cannot hold it; "" for content that only its own provider can read."""
    if part.kind in ("text", "result"):
        return part.text
    return "[image]" if part.kind == "image" else ""


def content_text(content: Any) -> str:
    """Return the text of a content that is a text or a list of blocks."""
    if isinstance(content, list):
        return "".join(as_text(block.get("text")) for block in content if isinstance(block, dict))
    return as_text(content)


def reply_deltas(reply: Reply) -> list[Delta]:
    """Return a whole answer as if it had been streamed."""
    parts = [
        Delta(part.kind, encode_json(part.arguments) if part.kind == "call" else part.text, part.call_id, part.name)
        for part in reply.message.parts
        if part.kind in ("text", "thinking", "call")
    ]
    return [*parts, Delta("end", reply=reply)]


def _decode_forgivingly(data: str | bytes) -> Any:
    """Decode JSON with lone surrogates: some servers split an emoji between two events."""
    try:
        return drop_lone_surrogates(json.loads(data))
    except (ValueError, RecursionError):
        raise GarbledAnswer("it is not JSON") from None
