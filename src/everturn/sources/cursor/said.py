"""Lines of an agent's transcript: who spoke, and which tools were called. What they gave back is not written."""

from __future__ import annotations

import re
from typing import Any

from everturn.model.conversation import Block, Message
from everturn.sources.foreign import digest, milliseconds, strings, word
from everturn.sources.tools import call_start, call_text
from everturn.sources.wholefile import entries, record

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
