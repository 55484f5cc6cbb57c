"""Convert bubbles of the editor's databases, transcript lines and export sections into messages.

A bubble holds a prompt of the human, or an answer of the model with its thinking and one call. A transcript line holds prompts,
answers and calls, but not the results of the calls. An export is Markdown:

    # Title
    _Exported on 5/19/2025 at 11:13:55 EDT from Cursor (0.50.4)_
    ---
    **User**
    …
    ---
    **Cursor**
    …

It has no tool calls, and its only time is that of the export, in the notation of the country.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from everturn.model.conversation import Block, CallEnd, Message, TokenUsage, fingerprint
from everturn.sources.toolkit.line_reader import listing, mapping
from everturn.sources.toolkit.values import (
    call_block,
    count,
    decode_value,
    digest,
    error_class,
    exit_code,
    exit_status,
    milliseconds,
    strings,
    text_blocks,
    unknown_block,
    unknown_message,
    word,
)

_HUMAN, _MODEL = (1, "user"), (2, "ai")
_ATTACHED = ("attachedCodeChunks", "selections", "codebaseContextChunks", "docsReferences")


# --- bubbles ---
def bubble_message(bubble: dict[str, Any]) -> Message:
    if is_known_bubble(bubble):
        is_human = bubble.get("type") in _HUMAN
        return _message(bubble, "user", "human", "text", _prompt_blocks(bubble)) if is_human else _answer(bubble)
    blocks = text_blocks("\n".join(strings(bubble, "bubbleId", "type")), "meta", "unknown")
    return _message(bubble, "system", "system", "unknown", blocks)


def is_known_bubble(bubble: dict[str, Any]) -> bool:
    kind = bubble.get("type")
    return kind in (*_HUMAN, *_MODEL) and kind is not True


def _answer(bubble: dict[str, Any]) -> Message:
    thought = mapping(bubble.get("thinking")).get("text") or bubble.get("thinking")
    text = _text(bubble)
    blocks = [
        *text_blocks(thought if isinstance(thought, str) else "", "thinking", "thinking"),
        *text_blocks(text, "answer"),
        *_code_blocks(bubble, text),
        *_call_blocks(mapping(bubble.get("toolFormerData"))),
    ]
    if (failure := "\n".join(strings(bubble.get("errorDetails")))) and not blocks:
        return _message(bubble, "assistant", "system", "notice", text_blocks(failure, "meta"))
    return _message(bubble, "assistant", "model", "text", blocks)


def _prompt_blocks(bubble: dict[str, Any]) -> list[Block]:
    attached = {key: bubble.get(key) or mapping(bubble.get("context")).get(key) for key in _ATTACHED}
    context = "\n".join(strings(attached, "uuid", "type", "range"))
    images = [Block("image", data=image) for image in listing(bubble.get("images"))]
    return [*text_blocks(_text(bubble), "prompt"), *text_blocks(context, "meta"), *images]


def _text(bubble: dict[str, Any]) -> str:
    for key in ("text", "rawText"):
        if isinstance(bubble.get(key), str) and bubble[key]:
            return word(bubble[key])
    delegate = word(mapping(bubble.get("delegate")).get("a"))
    return delegate or _rich_text(bubble.get("richText") or bubble.get("initText"))


def _rich_text(rich: Any) -> str:
    """Return the text in a syntax tree of the editor."""
    tree = decode_value(rich.encode("utf-8", "replace")) if isinstance(rich, str) else rich
    texts: list[str] = []
    stack = [tree]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            texts += [node["text"]] if isinstance(node.get("text"), str) else []
            stack += reversed(list(node.values()))
        elif isinstance(node, list):
            stack += reversed(node)
    return word("".join(texts))


def _code_blocks(bubble: dict[str, Any], text: str) -> list[Block]:
    """Return the blocks of code that the text does not contain."""
    codes = [word(mapping(one).get("content")) for one in listing(bubble.get("codeBlocks"))]
    return [Block("text", code, "answer") for code in codes if code and code not in text]


def _call_blocks(data: dict[str, Any]) -> list[Block]:
    if not (name := word(data.get("name"))):
        return []
    arguments = _parse_json(data.get("rawArgs")) or _parse_json(data.get("params"))
    identity = word(data.get("toolCallId")) or f"{name}:{digest(*strings(arguments))}"
    call = call_block(identity, name, arguments, data)
    status = word(data.get("status"))
    if not (result := data.get("result")) and status not in ("completed", "error", "cancelled"):
        return [call]
    value = _parse_json(result)
    text = "\n".join(strings(value)) if value is not None else word(result)
    return [call, Block("result", text, "tool_output", result=_call_end(identity, data, mapping(value), text))]


def _call_end(identity: str, data: dict[str, Any], result: dict[str, Any], text: str) -> CallEnd:
    status, is_denied = word(data.get("status")), word(data.get("userDecision")) == "rejected"
    code = exit_code(result.get("exitCode", result.get("exitCodeV2")))
    failed = status in ("error", "cancelled") or is_denied
    reason = "rejected" if is_denied else "interrupted" if status == "cancelled" else error_class(text)
    return CallEnd(
        identity, failed or bool(code), reason if failed else "exit_status" if code else "",
        code if code is not None else exit_status(text) if failed else None, child=word(result.get("agentId")),
    )  # fmt: skip


def _parse_json(value: Any) -> Any:
    """Return the value of arguments or results, which may be JSON in a string."""
    if isinstance(value, str):
        return decode_value(value.encode("utf-8", "replace")) if value.lstrip()[:1] in ("{", "[") else None
    return value


def _message(bubble: dict[str, Any], role: str, origin: str, kind: str, blocks: Sequence[Block]) -> Message:
    started = mapping(bubble.get("timingInfo")).get("clientStartTime")
    at, precision = milliseconds(bubble.get("createdAt") or started or None)
    name = word(bubble.get("bubbleId")) or word(bubble.get("id"))
    is_answer = origin == "model"
    tool = mapping(bubble.get("toolFormerData"))
    tokens = mapping(bubble.get("tokenCount"))
    given, output = count(tokens.get("inputTokens")) or 0, count(tokens.get("outputTokens")) or 0
    version = f"{word(tool.get('status'))}/{len(_text(bubble))}"
    return Message(
        role, origin, kind, at, precision, name, (word(tool.get("modelCallId")) or name) if is_answer else "",
        (word(mapping(bubble.get("modelInfo")).get("modelName")) or word(bubble.get("modelType"))) if is_answer else "",
        tuple(blocks), TokenUsage(given, output) if is_answer and (given or output) else None, origin == "human",
        fingerprint=fingerprint(name, version) if name else None,
    )  # fmt: skip


# --- transcript lines ---
_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_TAGGED = re.compile(r"\s*<[a-z_]+[ >]")
_STAMP = re.compile(
    r"<timestamp>[^<]{0,40}?([A-Z][a-z]{2})[a-z]* (\d{1,2}), (\d{4}),? (\d{1,2}):(\d\d)\s?([AP])M(?: \(UTC([+-]\d{1,2})(?::?(\d\d))?\))?"
)
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def line_message(line: dict[str, Any]) -> Message | None:
    if word(line.get("type")) == "turn_ended":
        return _turn_end(line)
    content = mapping(line.get("message")).get("content")
    parts = [content] if isinstance(content, str) else listing(content)
    if line.get("role") == "assistant":
        blocks = tuple(_answer_block(part) for part in parts)
        is_complete = all(block.call is None for block in blocks)
        return Message("assistant", "model", "text", blocks=blocks, fidelity="exact" if is_complete else "partial")
    if line.get("role") == "user" and parts:
        return _prompt_message(parts)
    return unknown_line(line)


def is_known_line(line: dict[str, Any]) -> bool:
    return line.get("role") in ("user", "assistant") or line.get("type") == "turn_ended"


def unknown_line(line: dict[str, Any]) -> Message:
    return unknown_message(line, "type", "role")


def _turn_end(line: dict[str, Any]) -> Message | None:
    status = word(line.get("status"))
    if status in ("", "success", "completed"):
        return None
    kind = "interrupt" if status in ("aborted", "cancelled", "interrupted") else "notice"
    return Message("system", "system", kind, blocks=(Block("text", "\n".join(strings(line, "type")), "meta"),))


def _prompt_message(parts: list[Any]) -> Message:
    blocks: list[Block] = []
    at: tuple[int | None, str] = (None, "")
    for part in parts:
        text = part if isinstance(part, str) else mapping(part).get("text")
        if isinstance(text, str):
            blocks += _split_query(text)
            at = _parse_timestamp(text) if at[0] is None else at
        else:
            blocks.append(_other_block(part))
    is_human = any(block.field == "prompt" for block in blocks) or all(block.kind == "image" for block in blocks)
    origin, kind = ("human", "text") if is_human else ("injected", "context")
    return Message("user", origin, kind, *at, blocks=tuple(blocks), starts_turn=is_human)


def _split_query(text: str) -> list[Block]:
    """Return the blocks of the human's query, and of the context the editor put around it."""
    queries = [match[1].strip() for match in _QUERY.finditer(text)]
    if not queries:
        return [*text_blocks(text, "meta" if _TAGGED.match(text) else "prompt")]
    context = text_blocks(_QUERY.sub("", text).strip(), "meta")
    return [*context, *(Block("text", query, "prompt") for query in queries)]


def _other_block(part: Any) -> Block:
    kind = word(mapping(part).get("type"))
    return Block(kind, data=part) if kind in ("image", "document") else unknown_block(part)


def _answer_block(part: Any) -> Block:
    one = mapping(part)
    kind, text = word(one.get("type")), part if isinstance(part, str) else one.get("text")
    if kind == "tool_use":
        name = word(one.get("name"))
        identity = word(one.get("id")) or f"{name}:{digest(*strings(one.get('input')))}"
        return call_block(identity, name, one.get("input"), part)
    if kind in ("thinking", "reasoning"):
        return Block("thinking", word(one.get("thinking")) or word(text), "thinking", data=part)
    if isinstance(text, str):
        return Block("text", text, "answer", data=None if isinstance(part, str) else part)
    return _other_block(part)


def _parse_timestamp(text: str) -> tuple[int | None, str]:
    if (stamp := _STAMP.search(text)) is None or stamp[1] not in _MONTHS:
        return None, ""
    hour = int(stamp[4]) % 12 + (12 if stamp[6] == "P" else 0)
    zone = f"{int(stamp[7]):+03d}:{stamp[8] or '00'}" if stamp[7] else "+00:00"
    month = _MONTHS.index(stamp[1]) + 1
    at, _ = milliseconds(f"{stamp[3]}-{month:02d}-{int(stamp[2]):02d}T{hour:02d}:{stamp[5]}:00{zone}")
    return (at, "min" if stamp[7] else "day") if at is not None else (None, "")


# --- exports ---
#: The beginning of the next writer's section.
EXPORT_TURN = re.compile(rb"^---[ \t]*\r?\n\s*\*\*(?:User|Cursor)\*\*[ \t]*\r?$", re.MULTILINE)
_SPEAKER = re.compile(r"\s*---\s*\*\*(User|Cursor)\*\*[ \t]*\n?")
_HEAD = re.compile(r"\s*# ([^\n]*)\n+_Exported on ([^\n]{1,200}?) from Cursor(?: \(([^()\n]{1,40})\))?_")
_NUMBERS = re.compile(r"\d+")
_ZONE = re.compile(r"(?:GMT|UTC)([+-]\d{1,2})(?::?(\d\d))?|\b([A-Z]{3,4})\b(?!T[+-])")
_ZONES = {
    "UTC": 0, "GMT": 0, "EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8, "BST": 1,
    "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11,
}  # fmt: skip


class CursorExportHead(NamedTuple):
    """The facts in the first lines of an export."""

    title: str
    client: str
    at: int | None
    precision: str


def parse_export_head(text: str) -> CursorExportHead | None:
    """Return the head of an export; None when the text does not begin with one."""
    head = _HEAD.match(text.removeprefix("\ufeff"))
    return CursorExportHead(head[1].strip(), head[3] or "", *parse_local_time(head[2])) if head else None


def export_message(text: str) -> Message:
    """Return the message of one section of an export: the head, a prompt or an answer."""
    if (speaker := _SPEAKER.match(text)) is None:
        head = parse_export_head(text)
        at = (head.at, head.precision) if head else (None, "")
        blocks = text_blocks(text.strip(), "meta")
        return Message("system", "system", "context", *at, blocks=blocks, fidelity="rendered")
    body = text[speaker.end() :].strip()
    if speaker[1] == "User":
        blocks = text_blocks(body, "prompt")
        return Message("user", "human", "text", blocks=blocks, starts_turn=True, fidelity="rendered")
    return Message("assistant", "model", "text", blocks=text_blocks(body, "answer"), fidelity="rendered")


def parse_local_time(text: str) -> tuple[int | None, str]:
    """Return a time in the notation of any country; (None, "") where day and month are ambiguous."""
    numbers = [int(number) for number in _NUMBERS.findall(text)][:6]
    date = _parse_date(*numbers[:3]) if len(numbers) >= 3 else None
    if date is None:
        return None, ""
    zone = _parse_zone(text)
    if len(numbers) < 6 or zone is None:
        return milliseconds(date)
    hour, minute, second = numbers[3:]
    hour = hour % 12 + 12 if re.search(r"\bPM\b|오후|下午", text) else hour % 12 if re.search(r"\bAM\b", text) else hour
    return milliseconds(f"{date}T{hour:02d}:{minute:02d}:{second:02d}{zone}")


def _parse_date(first: int, second: int, third: int) -> str | None:
    if first > 31:
        year, month, day = first, second, third
    elif first > 12:
        day, month, year = first, second, third
    elif second > 12:
        month, day, year = first, second, third
    elif first == second:
        month = day = first
        year = third
    else:
        return None
    return f"{year:04d}-{month:02d}-{day:02d}"


def _parse_zone(text: str) -> str | None:
    for zone in _ZONE.finditer(text):
        if zone[1]:
            return f"{int(zone[1]):+03d}:{zone[2] or '00'}"
        if zone[3] in _ZONES:
            return f"{_ZONES[zone[3]]:+03d}:00"
    return None
