"""Calls of tools that the receiving agent does not offer, told as text.

A model that sees calls of tools it does not have tries to call them. A call that the writer of the receiving agent cannot
translate (`sources.toolkit.agent_program.tell_call`) becomes a sentence in the answer that made it, and its result a message
behind the other results. No word is lost, and both are marked as what they were.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from everturn.model.conversation import Block, CallStart, Message
from everturn.resume.history import History
from everturn.sources.toolkit.agent_program import text

_CALL = "[Called the tool {} of the agent before: {}]"
_RESULT = "[{} of the tool {}]\n{}"


def tell_calls(history: History, offers: Callable[[CallStart], bool]) -> History:
    """Return the history with the calls that are not offered as text."""
    told: dict[str, str] = {}
    made: list[Message] = []
    for message in history.messages:
        if message.role == "assistant":
            blocks = tuple(_tell_call(block, offers, told) for block in message.blocks)
            made.append(replace(message, blocks=blocks))
        elif message.role == "tool" and any(_call_id(block) in told for block in message.blocks):
            made += _split_results(message, told)
        else:
            made.append(message)
    return replace(history, messages=made, told=len(told))


def _tell_call(block: Block, offers: Callable[[CallStart], bool], told: dict[str, str]) -> Block:
    call = block.call
    if call is None or offers(call):
        return block
    told[call.call_id] = call.name
    given = call.input if isinstance(call.input, str) else text(call.input if call.input is not None else {})
    return Block("text", _CALL.format(call.name, given))


def _split_results(message: Message, told: dict[str, str]) -> list[Message]:
    """Return the results of calls that stay calls, and the others as a message of their own."""
    calls = tuple(block for block in message.blocks if _call_id(block) not in told)
    texts = tuple(_tell_result(block, told[_call_id(block)]) for block in message.blocks if _call_id(block) in told)
    stays = [replace(message, blocks=calls)] if calls else []
    return [*stays, Message("user", "tool", "output", message.at, blocks=texts)]


def _tell_result(block: Block, name: str) -> Block:
    failed = block.result is not None and block.result.is_error
    return Block("text", _RESULT.format("Error" if failed else "Output", name, block.text))


def _call_id(block: Block) -> str:
    return block.result.call_id if block.result is not None else ""
