"""A model that says what it is told to, piece by piece, and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from everturn.llm.protocol import ChatMessage, ChatPart, Delta, ModelRequest, Reply, ReplyTokens


@dataclass
class Model:
    """Gives its replies in order, as many as the conversation has answers already."""

    replies: list[Reply]
    asked: list[ModelRequest] = field(default_factory=list)
    while_speaking: Callable[[], None] = lambda: None
    closed: int = 0
    name: str = "model"
    model: str = "model-1"
    window: int = 0
    max_tokens: int = 0
    takes_tools: bool = True

    def stream(self, request: ModelRequest) -> Iterator[Delta]:
        """See `llm.Backend`."""
        self.asked.append(request)
        reply = self.replies[sum(message.role == "assistant" for message in request.messages)]
        try:
            for word in reply.text.split():
                yield Delta("text", f"{word} ")
                self.while_speaking()
            yield Delta("end", reply=reply)
        finally:
            self.closed += 1

    def ask(self, request: ModelRequest) -> Reply:
        """See `llm.Backend`."""
        return next(delta.reply for delta in self.stream(request) if delta.reply is not None)


def says(text: str, stop: str = "end") -> Reply:
    """An answer in words."""
    return Reply(ChatMessage("assistant", (ChatPart("text", text),), id=f"m-{text[:9]}"), stop, ReplyTokens(100, 10))


def calls(*wanted: tuple[str, str] | tuple[str, str, Any]) -> Reply:
    """An answer that calls tools: (call id, name, arguments)."""
    parts = tuple(
        ChatPart("call", call_id=one[0], name=one[1], arguments=one[2] if len(one) > 2 else {}) for one in wanted
    )
    return Reply(ChatMessage("assistant", parts, id=f"m-{wanted[0][0]}"), "calls", ReplyTokens(100, 10))
