"""Talking to models: one neutral form of a conversation, one protocol, one file for each wire format.

A `ModelRequest` is what is asked, a `Reply` what came back, a `Receipt` what it cost. Everything a provider sent is kept
verbatim in `Part.raw`, also what this version does not know: a history goes back to the provider that made it unchanged.
Nothing here is called unless the user named a backend. Secrets are taken out by the caller's `clean` before anything is
sent (`everturn.llm.asker`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

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
