"""Bubbles: what the human typed and what the model answered, thought and called, as the editor's databases hold them.

Lines of an agent's transcript: who spoke, and which tools were called. What they gave back is not written.

Markdown as the editor exports it: a title, a line that says when and by which version, and what was said in turns.

    # Title
    _Exported on 5/19/2025 at 11:13:55 EDT from Cursor (0.50.4)_
    ---
    **User**
    …
    ---
    **Cursor**
    …

Tools are not in it, and the only time is that of the export, written the way of the country.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from everturn.model.conversation import Block, CallEnd, Message, TokenUsage, fingerprint
from everturn.sources.toolkit.blocks import call_start, call_text, error_class, exit_status
from everturn.sources.toolkit.json_document import entries, record
from everturn.sources.toolkit.values import count, decode_value, digest, milliseconds, strings, word

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


_QUERY = re.compile(r"<user_query>\n?(.*?)\n?</user_query>", re.DOTALL)
_TAGGED = re.compile(r"\s*<[a-z_]+[ >]")
_STAMP = re.compile(
    r"<timestamp>[^<]{0,40}?([A-Z][a-z]{2})[a-z]* (\d{1,2}), (\d{4}),? (\d{1,2}):(\d\d)\s?([AP])M(?: \(UTC([+-]\d{1,2})(?::?(\d\d))?\))?"
)
_MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


def read_line(found: dict[str, Any]) -> Message | None:
    """The message of a line; None when it holds none."""
    if word(found.get("type")) == "turn_ended":
        return _turn_end(found)
    content = record(found.get("message")).get("content")
    blocks = [content] if isinstance(content, str) else entries(content)
    if found.get("role") == "assistant":
        made = tuple(block for part in blocks for block in _answer_blocks(part))
        whole = all(block.call is None for block in made)
        return Message("assistant", "model", "text", blocks=made, fidelity="exact" if whole else "partial")
    if found.get("role") == "user" and blocks:
        return _prompt_message(blocks)
    return unknown(found)


def is_known_line(found: dict[str, Any]) -> bool:
    """Whether a line is of a kind that this version knows."""
    return found.get("role") in ("user", "assistant") or found.get("type") == "turn_ended"


def unknown(found: dict[str, Any]) -> Message:
    """A line of a kind this version does not know: its words are kept, shown and indexed."""
    text = "\n".join(strings(found, "type", "role"))
    return Message("system", "system", "unknown", blocks=(Block("unknown", text, "meta"),) if text else ())


def _turn_end(found: dict[str, Any]) -> Message | None:
    status = word(found.get("status"))
    if status in ("", "success", "completed"):
        return None
    kind = "interrupt" if status in ("aborted", "cancelled", "interrupted") else "notice"
    return Message("system", "system", kind, blocks=(Block("text", "\n".join(strings(found, "type")), "meta"),))


def _prompt_message(parts: list[Any]) -> Message:
    blocks: list[Block] = []
    at: tuple[int | None, str] = (None, "")
    for part in parts:
        text = part if isinstance(part, str) else record(part).get("text")
        if isinstance(text, str):
            blocks += _words(text)
            at = _stamp(text) if at[0] is None else at
        else:
            blocks.append(_wordless_block(part))
    human = any(block.field == "prompt" for block in blocks) or all(block.kind == "image" for block in blocks)
    origin, kind = ("human", "text") if human else ("injected", "context")
    return Message("user", origin, kind, *at, blocks=tuple(blocks), starts_turn=human)


def _words(text: str) -> list[Block]:
    """What the human asked, and what the editor put around it."""
    asked = [found[1].strip() for found in _QUERY.finditer(text)]
    if not asked:
        return [Block("text", text, "meta" if _TAGGED.match(text) else "prompt")] if text else []
    around = _QUERY.sub("", text).strip()
    return [*([Block("text", around, "meta")] if around else []), *(Block("text", one, "prompt") for one in asked)]


def _wordless_block(part: Any) -> Block:
    kind = word(record(part).get("type"))
    if kind in ("image", "document"):
        return Block(kind, data=part)
    return Block("unknown", "\n".join(strings(part, "type")), "meta", data=part)


def _answer_blocks(part: Any) -> list[Block]:
    one = record(part)
    kind, text = word(one.get("type")), part if isinstance(part, str) else one.get("text")
    if kind == "tool_use":
        name = word(one.get("name"))
        identity = word(one.get("id")) or f"{name}:{digest(*strings(one.get('input')))}"
        start = call_start(identity, name, one.get("input"))
        return [Block("call", call_text(start), "tool_input", call=start, data=part)]
    if kind in ("thinking", "reasoning"):
        words = word(one.get("thinking")) or word(text)
        return [Block("thinking", words, "thinking", data=part)]
    if isinstance(text, str):
        return [Block("text", text, "answer", data=None if isinstance(part, str) else part)]
    return [_wordless_block(part)]


def _stamp(text: str) -> tuple[int | None, str]:
    found = _STAMP.search(text)
    if found is None or found[1] not in _MONTHS:
        return None, ""
    hour = int(found[4]) % 12 + (12 if found[6] == "P" else 0)
    zone = f"{int(found[7]):+03d}:{found[8] or '00'}" if found[7] else "+00:00"
    month = _MONTHS.index(found[1]) + 1
    at, _ = milliseconds(f"{found[3]}-{month:02d}-{int(found[2]):02d}T{hour:02d}:{found[5]}:00{zone}")
    return (at, "min" if found[7] else "day") if at is not None else (None, "")


#: Where the next speaker begins.
TURN = re.compile(rb"^---[ \t]*\r?\n\s*\*\*(?:User|Cursor)\*\*[ \t]*\r?$", re.MULTILINE)
_SPEAKER = re.compile(r"\s*---\s*\*\*(User|Cursor)\*\*[ \t]*\n?")
_HEAD = re.compile(r"\s*# ([^\n]*)\n+_Exported on ([^\n]{1,200}?) from Cursor(?: \(([^()\n]{1,40})\))?_")
_NUMBERS = re.compile(r"\d+")
_ZONE = re.compile(r"(?:GMT|UTC)([+-]\d{1,2})(?::?(\d\d))?|\b([A-Z]{3,4})\b(?!T[+-])")
_ZONES = {
    "UTC": 0, "GMT": 0, "EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8, "BST": 1,
    "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "JST": 9, "KST": 9, "AEST": 10, "AEDT": 11,
}  # fmt: skip


class CursorExportHead(NamedTuple):
    """What the first lines say."""

    title: str
    client: str
    at: int | None
    precision: str


def head_of(text: str) -> CursorExportHead | None:
    """The head of an export."""
    found = _HEAD.match(text.removeprefix("\ufeff"))
    return CursorExportHead(found[1].strip(), found[3] or "", *moment(found[2])) if found else None


def export_message(text: str) -> Message:
    """The message of one stretch: the head, or what one side said."""
    found = _SPEAKER.match(text)
    if found is None:
        head = head_of(text)
        at = (head.at, head.precision) if head else (None, "")
        return Message("system", "system", "context", *at, blocks=_block(text, "meta"), fidelity="rendered")
    words = text[found.end() :]
    if found[1] == "User":
        return Message("user", "human", "text", blocks=_block(words, "prompt"), starts_turn=True, fidelity="rendered")
    return Message("assistant", "model", "text", blocks=_block(words, "answer"), fidelity="rendered")


def moment(text: str) -> tuple[int | None, str]:
    """A moment as the editor writes it in many countries; (None, "") where day and month could be either."""
    numbers = [int(number) for number in _NUMBERS.findall(text)][:6]
    if len(numbers) < 3:
        return None, ""
    date = _date(*numbers[:3])
    if date is None:
        return None, ""
    zone = _zone(text)
    if len(numbers) < 6 or zone is None:
        return milliseconds(date)
    hour, minute, second = numbers[3:]
    hour = hour % 12 + 12 if re.search(r"\bPM\b|오후|下午", text) else hour % 12 if re.search(r"\bAM\b", text) else hour
    return milliseconds(f"{date}T{hour:02d}:{minute:02d}:{second:02d}{zone}")


def _date(first: int, second: int, third: int) -> str | None:
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


def _zone(text: str) -> str | None:
    for found in _ZONE.finditer(text):
        if found[1]:
            return f"{int(found[1]):+03d}:{found[2] or '00'}"
        if found[3] in _ZONES:
            return f"{_ZONES[found[3]]:+03d}:00"
    return None


def _block(words: str, field: str) -> tuple[Block, ...]:
    return (Block("text", words.strip(), field),) if words.strip() else ()
