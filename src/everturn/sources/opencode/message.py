"""A message with its parts → a message of ours: the same wherever it was read.

Who speaks: a user message is the human's if any part of it is; one of synthetic texts only was put in by the client. In a
session that hangs on another one the agent there speaks (the reader knows). A command that the human ran by itself (`!`)
is kept by the client as an answer without a model's step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from everturn.model.conversation import Block, Message, TokenUsage, fingerprint
from everturn.sources.foreign import count, milliseconds, strings, word
from everturn.sources.linewise import Rec, listing, mapping
from everturn.sources.opencode.parts import blocks_of, is_own

_ABORTED = "MessageAbortedError"


class OpencodeMessage(NamedTuple):
    """A message, the type it is counted under, and whether all of it is known."""

    message: Message
    type: str
    known: bool = True


def build(info: Rec, parts: list[Any]) -> OpencodeMessage:
    """The message of a user or an assistant."""
    role = info.get("role")
    parts = parts or listing(info.get("parts"))
    if role not in ("user", "assistant"):
        return OpencodeMessage(unknown({"info": info, "parts": parts}, word(info.get("id"))), "?", False)
    made = _user(info, parts) if role == "user" else _assistant(info, parts)
    message, strange = made
    return OpencodeMessage(message, f"{role}/{strange}" if strange else role, not strange)


def failure(error: Rec, info: Rec) -> Message:
    """What stands in place of an answer: the human stopped it, or it went wrong."""
    time = _time(info)
    at, precision = milliseconds(time.get("completed") or time.get("created"))
    aborted = error.get("name") == _ABORTED
    text = word(mapping(error.get("data")).get("message")) or "\n".join(strings(error, "name", "type"))
    return Message(
        "system" if aborted else "assistant",
        "system",
        "interrupt" if aborted else "notice",
        at,
        precision,
        f"{word(info.get('id'))}/error",
        blocks=(Block("text", text, "meta", data=error),) if text else (),
        fingerprint=fingerprint("error", f"{time.get('created')}/{time.get('completed')}"),
    )


def unknown(value: Any, native_id: str = "") -> Message:
    """Something this version does not know, with all its words."""
    text = "\n".join(strings(value))
    mark = fingerprint(native_id, str(len(text))) if native_id else None
    return Message(
        "system", "system", "unknown", native_id=native_id, blocks=(Block("unknown", text, "meta", data=value),),
        fingerprint=mark,
    )  # fmt: skip


def mark(name: str, info: Rec, blocks: tuple[Block, ...]) -> int | None:
    """Equal for copies of a message and for one read from several places, else not.

    A fork copies messages with their times but gives them new ids, so the ids are left out. A message that is still
    being written is another one when there is more of it: nothing of it may count as known already.
    """
    time = _time(info)
    size = f"{len(blocks)}/{sum(len(block.text) for block in blocks)}"
    if isinstance(time.get("created"), (int, float)):
        return fingerprint(name, f"{time['created']}/{time.get('completed')}/{size}")
    native_id = word(info.get("id"))
    return fingerprint(native_id, size) if native_id else None


def _user(info: Rec, parts: list[Any]) -> tuple[Message, str]:
    kinds = {part.get("type") for part in parts if isinstance(part, dict) and isinstance(part.get("type"), str)}
    compacts = "compaction" in kinds
    own = not compacts and (not parts or any(map(is_own, parts)))
    found, strange = blocks_of(parts, "summary" if compacts else "prompt")
    kind = "compaction" if compacts else "command" if "subtask" in kinds else "text" if own else "context"
    at, precision = milliseconds(_time(info).get("created"))
    blocks = tuple(found)
    message = Message(
        "user",
        "human" if own else "system" if compacts else "injected",
        kind,
        at,
        precision,
        word(info.get("id")),
        blocks=blocks,
        starts_turn=own,
        fingerprint=mark("user", info, blocks),
    )
    return message, strange


def _assistant(info: Rec, parts: list[Any]) -> tuple[Message, str]:
    summary, by_hand = info.get("summary") is True, _is_by_hand(info, parts)
    found, strange = blocks_of(parts, "summary" if summary else "answer")
    time = _time(info)
    at, precision = milliseconds(time.get("created"))
    blocks = tuple(found)
    message = Message(
        "assistant",
        "human" if by_hand else "model",
        "shell" if by_hand else "summary" if summary else "text",
        at,
        precision,
        word(info.get("id")),
        "" if by_hand else word(info.get("id")),
        word(info.get("modelID")),
        blocks,
        None if by_hand else _usage(info, parts),
        starts_turn=by_hand,
        fingerprint=mark("assistant", info, blocks),
        reported_ms=_duration(time),
    )
    return message, strange


def _is_by_hand(info: Rec, parts: list[Any]) -> bool:
    """The human ran a command: nothing but the shell's work, without the marks that a model's step leaves."""
    if info.get("finish") or not parts or _tokens(info)[1]:
        return False
    return all(isinstance(part, dict) and part.get("type") == "tool" and part.get("tool") == "bash" for part in parts)


def _usage(info: Rec, parts: list[Any]) -> TokenUsage | None:
    """Of the whole response, as the message has it; where it has none, what its steps add up to."""
    numbers = _tokens(info)
    if not any(numbers):
        steps = [_tokens(part) for part in parts if isinstance(part, dict) and part.get("type") == "step-finish"]
        numbers = [sum(column) for column in zip(*steps, strict=True)] if steps else numbers
    return TokenUsage(*numbers) if isinstance(info.get("tokens"), dict) or any(numbers) else None


def _tokens(holder: Rec) -> list[int]:
    """Input, output (with the reasoning, which is counted apart), read from and written to the cache."""
    tokens = mapping(holder.get("tokens"))
    cache = mapping(tokens.get("cache"))
    output = (count(tokens.get("output")) or 0) + (count(tokens.get("reasoning")) or 0)
    return [count(tokens.get("input")) or 0, output, count(cache.get("read")) or 0, count(cache.get("write")) or 0]


def _duration(time: Rec) -> int | None:
    start, end = count(time.get("created")), count(time.get("completed"))
    return end - start if start and end and end >= start else None


def _time(info: Rec) -> Rec:
    """Early clients kept the time one level down."""
    return mapping(info.get("time")) or mapping(mapping(info.get("metadata")).get("time"))
