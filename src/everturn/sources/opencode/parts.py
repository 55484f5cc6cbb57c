"""Converts the parts of a message to blocks.

A tool part gives the call and, once it is done, its result: the files it changed, why it failed, the session it started.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, CallStart
from everturn.sources.toolkit.line_reader import Rec, listing, mapping
from everturn.sources.toolkit.values import build_call, call_text, count, exit_code, strings, word

_KINDS = {
    "read": "read list", "edit": "edit multiedit patch apply_patch", "create": "write", "shell": "bash shell",
    "search": "glob grep codesearch websearch lsp lsp_hover lsp_diagnostics", "fetch": "webfetch", "task": "task",
    "plan": "todowrite todoread plan_enter plan_exit", "ask": "question",
}  # fmt: skip
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_PATHS = ("filePath", "path", "file_path", "filepath")
_ACTIONS = {"add": "created", "update": "edited", "move": "edited", "delete": "deleted"}

#: Error classes by a pattern in the text of a failed call; the first match decides.
_ERRORS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("rejected", r"(?i)the user (?:has )?(?:rejected|dismissed|declined)|rejected permission"),
        ("permission", r"(?i)rule which prevents|permission denied|operation not permitted|\bEACCES|\bEPERM"),
        ("interrupted", r"(?i)execution (?:was )?(?:aborted|interrupted)|user aborted|\Aaborted\b"),
        ("timeout", r"(?i)exceeding timeout|timed out|timeout of \d"),
        ("unknown_tool", r"(?i)unavailable tool|no such tool|unknown (?:tool|agent|skill)"),
        ("invalid_input", r"(?i)invalid arguments|arguments provided|multiple matches|must be different|invalid patch"),
        ("stale", r"(?i)must read (?:the )?file|modified since"),
        ("too_large", r"(?i)too large|exceeds (?:the )?maximum"),
        ("not_found", r"(?i)not found|does not exist|no such file|ENOENT|could not find|failed to find"),
    )
)
_LOOKED_AT = 600


def tool_blocks(part: Rec) -> list[Block]:
    """Return the call of a tool part, its result unless the tool is still running, and its attachments."""
    state = mapping(part.get("state"))
    start = call_start(word(part.get("callID")) or word(part.get("id")), word(part.get("tool")), state.get("input"))
    blocks = [Block("call", call_text(start), "tool_input", call=start, data=part)]
    if state.get("status") in ("completed", "error"):
        text = _result_text(state)
        blocks.append(Block("result", text, "tool_output", result=_end(start, state, text)))
        blocks += [file_block(attached) for attached in map(mapping, listing(state.get("attachments")))]
    return blocks


def file_block(part: Rec) -> Block:
    """Return the block of an attached file; its name is indexed."""
    kind = "image" if word(part.get("mime")).startswith("image/") else "document"
    return Block(kind, word(part.get("filename")), "meta", data=part)


def child_of(part: Rec) -> str:
    """Return the session that a tool part started, known as soon as the tool runs."""
    return _child_in(mapping(mapping(part.get("state")).get("metadata")))


def _child_in(metadata: Rec) -> str:
    return word(metadata.get("sessionId")) or word(metadata.get("sessionID"))


def error_class(text: str) -> str:
    """Return why a call failed."""
    text = text if len(text) <= 2 * _LOOKED_AT else f"{text[:_LOOKED_AT]}\n{text[-_LOOKED_AT:]}"
    return next((name for name, pattern in _ERRORS if pattern.search(text)), "other")


def call_start(call_id: str, name: str, given: Any) -> CallStart:
    kind = _KIND_OF.get(name) or ("recall" if "conversation_recall" in name else "other")
    return build_call(call_id, name, kind, given, _PATHS)


def _result_text(state: Rec) -> str:
    given = state.get("error" if state["status"] == "error" else "output")
    return given if isinstance(given, str) else "\n".join(strings(given))


def _end(start: CallStart, state: Rec, text: str) -> CallEnd:
    metadata, arguments = mapping(state.get("metadata")), mapping(start.input)
    status = exit_code(metadata.get("exit"))
    why = _failure(start, state, text, status)
    artifacts = _find_artifacts(start, metadata, arguments)
    action, path = artifacts[0] if artifacts else ("", "")
    child, others = _child_in(metadata), tuple(artifacts[1:])
    lasted = duration(mapping(state.get("time")), "start", "end")
    return CallEnd(start.call_id, bool(why), why, status, lasted, action, path, child, others)


def _failure(start: CallStart, state: Rec, text: str, status: int | None) -> str:
    """Return why a call failed; "" if it did not. To the client a failed shell command is a completed call."""
    if state["status"] == "error":
        return "interrupted" if mapping(state.get("metadata")).get("interrupted") is True else error_class(text)
    if start.name == "invalid":  # the client's name for a call it cannot parse
        found = error_class(text)
        return found if found == "unknown_tool" else "invalid_input"
    if start.kind == "shell" and status is None and "_metadata>" in text[-_LOOKED_AT:]:
        found = error_class(text[text.rfind("<", 0, text.rfind("_metadata>", 0, -20)) :])
        return found if found in ("timeout", "interrupted") else ""
    return "exit_status" if status else ""


def duration(time: Rec, first: str, last: str) -> int | None:
    """Return the milliseconds between two times, if both are there and in order."""
    start, end = count(time.get(first)), count(time.get(last))
    return end - start if start and end and end >= start else None


def _find_artifacts(start: CallStart, metadata: Rec, arguments: Rec) -> list[tuple[str, str]]:
    """Return the files of a call that the client noted, with what happened to them."""
    if start.kind == "create":
        action = "edited" if metadata.get("exists") is True else "created"
        return [(action, word(metadata.get("filepath")) or start.path)]
    if start.name == "edit" and arguments.get("oldString") == "":
        return [("created", start.path)]
    files = map(mapping, listing(metadata.get("files")))
    named = [(_ACTIONS.get(word(one.get("type")), ""), word(one.get("filePath"))) for one in files]
    return [(action, path) for action, path in named if action and path]


#: Fields of a part that mean nothing to a reader.
_ENVELOPE = ("type", "id", "sessionID", "messageID")


def blocks_of(parts: list[Any], field: str) -> tuple[list[Block], str]:
    """Return the blocks of some parts, with text indexed under `field`; and the type of an unknown part, or ""."""
    blocks: list[Block] = []
    unknown_type = ""
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        convert = _CONVERTERS.get(kind) if isinstance(kind, str) else None
        if convert is None:
            blocks.append(_unknown_block(part))
            unknown_type = unknown_type or (kind if isinstance(kind, str) and kind else "?")
        else:
            blocks += convert(part, field)
            if kind == "patch":
                _credit_subagent(blocks, part)
    return blocks, unknown_type


def _credit_subagent(blocks: list[Block], part: Rec) -> None:
    """Note the files that changed in a step as edits of the one subagent that ran in it, if no other call can be meant."""
    calls = [block.call for block in blocks if block.call is not None]
    if any(call.kind in ("shell", "edit", "create") for call in calls):
        return
    at = [number for number, one in enumerate(blocks) if one.result is not None and not one.result.is_error]
    tasks = {call.call_id for call in calls if call.kind == "task"}
    own = [number for number in at if blocks[number].result.call_id in tasks]  # type: ignore[union-attr]
    result = blocks[own[0]].result if len(own) == 1 else None
    files = tuple(("edited", word(path)) for path in listing(part.get("files")) if isinstance(path, str) and path)
    if result is not None and not result.others:
        blocks[own[0]] = replace(blocks[own[0]], result=replace(result, others=files))


def _unknown_block(part: Any) -> Block:
    return Block("unknown", "\n".join(strings(part, *_ENVELOPE)), "meta", data=part)


def is_own(part: Any) -> bool:
    """Return whether a part is the speaker's own and not inserted by the client."""
    if not isinstance(part, dict) or part.get("type") not in ("text", "file", "subtask"):
        return False
    return not (part.get("synthetic") is True or part.get("ignored") is True)


def _text(part: Rec, field: str) -> list[Block]:
    text = part.get("text")
    if not isinstance(text, str):
        return [_unknown_block(part)]
    own = field == "summary" or is_own(part)
    return [Block("text", text, field if own else "meta", data=part)] if text else []


def _reasoning(part: Rec, field: str) -> list[Block]:
    text = part.get("text")
    return [Block("thinking", text if isinstance(text, str) else "", "thinking", data=part)]


def _subtask(part: Rec, field: str) -> list[Block]:
    """Return the blocks of a command that the human gave to a subagent."""
    about = "\n".join(filter(None, (word(part.get(key)) for key in ("command", "description", "agent"))))
    blocks = [Block("text", word(part.get("prompt")), field, data=part), Block("text", about, "meta")]
    return [block for block in blocks if block.text]


def _patch(part: Rec, field: str) -> list[Block]:
    """Return the files that changed while the step ran, whoever changed them."""
    files = "\n".join(word(path) for path in listing(part.get("files")) if isinstance(path, str))
    return [Block("text", files, "meta", data=part)] if files else []


def _note_blocks(part: Rec, field: str) -> list[Block]:
    """Return the client's own text: a mention of an agent, a failed attempt."""
    text = word(part.get("name")) or "\n".join(strings(mapping(part.get("error")), "name", "responseHeaders"))
    return [Block("text", text, "meta", data=part)] if text else []


_CONVERTERS: dict[str, Callable[[Rec, str], list[Block]]] = {
    "text": _text, "reasoning": _reasoning, "tool": lambda part, field: tool_blocks(part),
    "file": lambda part, field: [file_block(part)], "subtask": _subtask, "patch": _patch, "agent": _note_blocks,
    "retry": _note_blocks,
    **dict.fromkeys(("step-start", "step-finish", "snapshot", "compaction"), lambda part, field: []),
}  # fmt: skip
