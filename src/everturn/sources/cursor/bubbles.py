"""Bubbles: what the human typed and what the model answered, thought and called, as the editor's databases hold them."""

from __future__ import annotations

from typing import Any

from everturn.model.conversation import Block, CallEnd, Message, TokenUsage, fingerprint
from everturn.sources.foreign import count, decode_value, digest, milliseconds, strings, word
from everturn.sources.tools import call_start, call_text, error_class, exit_status
from everturn.sources.wholefile import entries, record

_HUMAN, _MODEL = (1, "user"), (2, "ai")
_AROUND = ("attachedCodeChunks", "selections", "codebaseContextChunks", "docsReferences")


def bubble(found: dict[str, Any]) -> Message:
    """The message of a bubble."""
    if is_known_bubble(found):
        human = found.get("type") in _HUMAN
        return _message(found, "user", "human", "text", _prompt_blocks(found)) if human else _answer(found)
    text = "\n".join(strings(found, "bubbleId", "type"))
    return _message(found, "system", "system", "unknown", [Block("unknown", text, "meta")] if text else [])


def is_known_bubble(found: dict[str, Any]) -> bool:
    """Whether a bubble is of a kind that this version knows."""
    kind = found.get("type")
    return kind in (*_HUMAN, *_MODEL) and kind is not True


def _answer(found: dict[str, Any]) -> Message:
    blocks: list[Block] = []
    thought = record(found.get("thinking")).get("text") or found.get("thinking")
    if isinstance(thought, str) and thought:
        blocks.append(Block("thinking", thought, "thinking"))
    text = _text(found)
    blocks += [Block("text", text, "answer")] if text else []
    blocks += _code_blocks(found, text)
    blocks += _call(record(found.get("toolFormerData")))
    failure = "\n".join(strings(found.get("errorDetails")))
    if failure and not blocks:
        return _message(found, "assistant", "system", "notice", [Block("text", failure, "meta")])
    return _message(found, "assistant", "model", "text", blocks)


def _prompt_blocks(found: dict[str, Any]) -> list[Block]:
    text = _text(found)
    blocks = [Block("text", text, "prompt")] if text else []
    around = {key: found.get(key) or record(found.get("context")).get(key) for key in _AROUND}
    added = "\n".join(strings(around, "uuid", "type", "range"))
    blocks += [Block("text", added, "meta")] if added else []
    return blocks + [Block("image", data=image) for image in entries(found.get("images"))]


def _text(found: dict[str, Any]) -> str:
    for key in ("text", "rawText"):
        if isinstance(found.get(key), str) and found[key]:
            return word(found[key])
    return word(record(found.get("delegate")).get("a")) or _rich_text(found.get("richText") or found.get("initText"))


def _rich_text(rich: Any) -> str:
    """The words of a text that is kept as a tree of the editor's."""
    tree = decode_value(rich.encode("utf-8", "replace")) if isinstance(rich, str) else rich
    words: list[str] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            words += [node["text"]] if isinstance(node.get("text"), str) else []
            stack += reversed(list(node.values()))
        elif isinstance(node, list):
            stack += reversed(node)
    return word("".join(words))


def _code_blocks(found: dict[str, Any], text: str) -> list[Block]:
    """Code that stands beside the words and not in them."""
    codes = [word(record(one).get("content")) for one in entries(found.get("codeBlocks"))]
    return [Block("text", code, "answer") for code in codes if code and code not in text]


def _call(data: dict[str, Any]) -> list[Block]:
    name = word(data.get("name"))
    if not name:
        return []
    given = _parse_json(data.get("rawArgs")) or _parse_json(data.get("params"))
    identity = word(data.get("toolCallId")) or f"{name}:{digest(*strings(given))}"
    start = call_start(identity, name, given)
    call = Block("call", call_text(start), "tool_input", call=start, data=data)
    status = word(data.get("status"))
    result = data.get("result")
    if not result and status not in ("completed", "error", "cancelled"):
        return [call]
    value = _parse_json(result)
    text = "\n".join(strings(value)) if value is not None else word(result)
    return [call, Block("result", text, "tool_output", result=_end(identity, data, value, text))]


def _end(identity: str, data: dict[str, Any], value: Any, text: str) -> CallEnd:
    status, denied = word(data.get("status")), word(data.get("userDecision")) == "rejected"
    noted = record(value)
    code = noted.get("exitCode", noted.get("exitCodeV2"))
    code = code if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 1 << 31 else None
    failed = status in ("error", "cancelled") or denied
    why = "rejected" if denied else "interrupted" if status == "cancelled" else error_class(text)
    return CallEnd(
        identity,
        failed or bool(code),
        why if failed else "exit_status" if code else "",
        code if code is not None else exit_status(text) if failed else None,
        child=word(noted.get("agentId")),
    )


def _parse_json(value: Any) -> Any:
    """Arguments and results are JSON in a string."""
    if isinstance(value, str):
        return decode_value(value.encode("utf-8", "replace")) if value.lstrip()[:1] in ("{", "[") else None
    return value


def _message(found: dict[str, Any], role: str, origin: str, kind: str, blocks: list[Block]) -> Message:
    at, precision = milliseconds(
        found.get("createdAt") or record(found.get("timingInfo")).get("clientStartTime") or None
    )
    name = word(found.get("bubbleId")) or word(found.get("id"))
    spoke = origin == "model"
    tool = record(found.get("toolFormerData"))
    tokens = record(found.get("tokenCount"))
    given, said = count(tokens.get("inputTokens")) or 0, count(tokens.get("outputTokens")) or 0
    states = f"{word(tool.get('status'))}/{len(_text(found))}"
    return Message(
        role, origin, kind, at, precision, name, (word(tool.get("modelCallId")) or name) if spoke else "",
        (word(record(found.get("modelInfo")).get("modelName")) or word(found.get("modelType"))) if spoke else "",
        tuple(blocks), TokenUsage(given, said) if spoke and (given or said) else None, origin == "human",
        fingerprint=fingerprint(name, states) if name else None,
    )  # fmt: skip
