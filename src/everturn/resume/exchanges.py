"""A history as turns and exchanges: what may be left out of a request, and what must stay together.

A turn is what the user said and all that followed. An exchange is what the model said, with the results of all it called.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from everturn.llm import ChatMessage


class ExchangeTurn(Struct):
    """Words of the user, and the exchanges that followed."""

    prompt: list[ChatMessage]
    exchanges: list[list[ChatMessage]]


def turns_of(messages: Sequence[ChatMessage]) -> list[ExchangeTurn]:
    """The turns of a history. The first has no prompt where the history begins in the middle of one.

    A result that belongs to no call is in none of them.
    """
    turns = [ExchangeTurn([], [])]
    waiting: set[str] = set()  # calls of the last exchange without a result yet
    for message in messages:
        if message.role != "assistant" and not is_result(message):
            waiting.clear()
            if turns[-1].exchanges:
                turns.append(ExchangeTurn([], []))
            turns[-1].prompt.append(message)
            continue
        if _continues_exchange(message, turns[-1].exchanges, waiting):
            turns[-1].exchanges[-1].append(message)
        elif message.role == "assistant":
            turns[-1].exchanges.append([message])
        waiting |= {part.call_id for part in message.parts if part.kind == "call"}
        waiting -= {part.call_id for part in message.parts if part.kind == "result"}
    return turns


def is_result(message: ChatMessage) -> bool:
    """Whether a message brings what tools gave back."""
    return message.role == "tool" or any(part.kind == "result" for part in message.parts)


def _continues_exchange(message: ChatMessage, exchanges: list[list[ChatMessage]], waiting: set[str]) -> bool:
    """Whether a message belongs to the last exchange. A result without any belongs nowhere."""
    if not exchanges:
        return False
    return message.role != "assistant" or bool(waiting) or exchanges[-1][-1].role == "assistant"
