"""Convert the parts of a request into messages, each from its own bytes.

A request holds the prompt (`message`), its attachments (`variableData`), the answer as it was shown (`response`, a list of
parts) and the `result`. There, newer clients keep what the model sent: rounds with their text, thoughts and calls, and the
results of the calls by id. The reader takes the rounds where they are, else the answer as it was shown.

`view` tells the parts apart by their shape: a prompt is a text or has one, a round has `toolCalls`, the parts of an answer
are a list without its brackets, the result of a call is a member without its braces.
"""

from __future__ import annotations

import re
from typing import Any

from everturn.model.conversation import Block, CallEnd, Message
from everturn.sources.toolkit.json_document import decode_item
from everturn.sources.toolkit.line_reader import listing, mapping
from everturn.sources.toolkit.values import (
    call_block,
    decode_value,
    digest,
    error_class,
    exit_code,
    milliseconds,
    result_block,
    strings,
    text_blocks,
    tool_kind,
    unknown_block,
    unknown_message,
    uri_path,
    word,
)

INVOCATIONS = frozenset(("toolInvocationSerialized", "toolInvocation"))
_TEXTS = frozenset(("", "markdownContent", "markdownVuln", "inlineReference"))
_SILENT = frozenset(("prepareToolInvocation", "undoStop", "mcpServersStarting"))
_EDITS = frozenset(("textEditGroup", "notebookEditGroup", "codeblockUri"))

#: Kinds of the tools whose names the toolkit does not know.
_KINDS = {
    "edit": "replaceString replace_string_in_file multi_replace_string_in_file multiReplaceString insert_edit_into_file "
    "insertEdit edit_notebook_file editNotebook",
    "create": "create_directory createDirectory create_new_jupyter_notebook",
    "shell": "get_terminal_output getTerminalOutput run_task create_and_run_task runTests run_tests terminal_last_command",
    "search": "findFiles findTextInFiles searchCodebase searchWorkspaceSymbols list_code_usages listCodeUsages github_repo "
    "test_search",
    "fetch": "fetch_webpage fetchWebPage open_simple_browser",
    "task": "runSubagent search_subagent execution_subagent",
    "plan": "manage_todo_list",
    "ask": "vscode_askQuestions",
}
_KIND_OF = {name: kind for kind, names in _KINDS.items() for name in names.split()}
_FAILED = re.compile(r"ERROR\b|The user (?:cancelled|skipped|declined|rejected)")
_REFUSED = re.compile(r"The user (?:cancelled|skipped|declined)")
#: Values of `isConfirmed.type` that mean the human did not allow the call.
_DENIED = (0, 5)


def view(record: bytes) -> Message | None:
    value, trouble = decode_item(record)
    if value is None and trouble:
        value, trouble = decode_item(b"{" + record + b"}")
        if isinstance(value, dict):
            return result_message(value)
        value, trouble = decode_item(b"[" + record + b"]")
        return answer_message(value) if isinstance(value, list) else None
    if isinstance(value, dict):
        return _view_object(value)
    if isinstance(value, bool):
        return interrupt_message()
    return prompt_message(value) if isinstance(value, str) else unknown_message(value)


def _view_object(value: dict[str, Any]) -> Message:
    if "toolCalls" in value:
        return round_message(value)
    if "variables" in value:
        return attachments_message(value)
    if "kind" in value or isinstance(value.get("value"), str):
        return answer_message([value])
    if "text" in value:
        return prompt_message(value)
    if "message" in value:
        return error_message(value)
    return interrupt_message() if "value" in value else unknown_message(value)


def prompt_message(value: Any) -> Message:
    text = value if isinstance(value, str) else word(mapping(value).get("text"))
    return Message("user", "human", "text", blocks=text_blocks(text, "prompt"), starts_turn=True)


def attachments_message(value: dict[str, Any]) -> Message:
    """Return the files, selections and instructions that were attached to a prompt."""
    blocks = []
    for variable in listing(value.get("variables")):
        about = mapping(variable)
        content = about.get("value")
        text = "\n".join(strings([about.get("name"), content if isinstance(content, str) else _path(content)]))
        blocks.append(Block("document", text, "meta", data=variable))
    return Message("user", "injected", "context", blocks=tuple(blocks))


def error_message(value: dict[str, Any]) -> Message:
    return Message("system", "system", "notice", blocks=text_blocks(word(value.get("message")), "meta"))


def interrupt_message() -> Message:
    return Message("system", "system", "interrupt")


def round_message(value: dict[str, Any]) -> Message:
    """Return one response of the model: its thoughts, text and calls."""
    at, precision = milliseconds(value.get("timestamp"))
    thoughts = "\n".join(strings(mapping(value.get("thinking")).get("text")))
    blocks = [*text_blocks(thoughts, "thinking", "thinking"), *text_blocks(word(value.get("response")), "answer")]
    for call in listing(value.get("toolCalls")):
        about = mapping(call)
        blocks.append(_call(word(about.get("id")), word(about.get("name")), about.get("arguments"), call))
    return Message("assistant", "model", "text", at, precision, word(value.get("id")), blocks=tuple(blocks))


def result_message(member: dict[str, Any]) -> Message:
    """Return the result of a call: an object with the id of the call as its only key."""
    blocks = []
    for call_id, value in member.items():
        text = _result_text(mapping(value).get("content"))
        block = result_block(word(call_id), text, True if _FAILED.match(text) else None, value)
        if block.result is not None and _REFUSED.match(text):
            block = Block("result", text, "tool_output", result=CallEnd(word(call_id), True, "rejected"), data=value)
        blocks.append(block)
    return Message("tool", "tool", "result", blocks=tuple(blocks))


def answer_message(parts: list[Any]) -> Message:
    """Return some parts of an answer as it was shown. References between texts belong to the text."""
    blocks: list[Block] = []
    text = ""
    for part in parts:
        kind = part_kind(part)
        if kind in _TEXTS:
            text += _shown_text(part)
            continue
        blocks += text_blocks(text, "answer")
        blocks += _part_blocks(part, kind)
        text = ""
    return Message("assistant", "model", "text", blocks=(*blocks, *text_blocks(text, "answer")))


def part_kind(part: Any) -> str:
    """Return the kind of a part: "" for plain text, "?" for what is none."""
    kind = part.get("kind", "") if isinstance(part, dict) else "?"
    return kind if isinstance(kind, str) and (kind or "value" in part) else "?"


def _shown_text(part: dict[str, Any]) -> str:
    if part.get("kind") == "inlineReference":
        target = part.get("inlineReference")
        name = word(part.get("name")) or word(mapping(target).get("name"))
        return name or _path(target).rpartition("/")[2]
    content = part.get("content", part.get("value"))
    return _string(content)


def _part_blocks(part: Any, kind: str) -> list[Block]:
    if kind in _SILENT:
        return []
    if kind == "thinking":
        return list(text_blocks("\n".join(strings(part.get("value"))), "thinking", "thinking"))
    if kind in INVOCATIONS:
        return _invocation(part)
    if kind in _EDITS:
        texts = [word(edit.get("text")) for edit in _dicts(part.get("edits"))]
        return [Block("document", "\n".join(filter(None, [_path(part.get("uri")), *texts])), "meta", data=part)]
    block = unknown_block({key: value for key, value in mapping(part).items() if key != "kind"} or part)
    return [block] if block.text else []


def _invocation(part: dict[str, Any]) -> list[Block]:
    """Return a call as it was shown: without the exact arguments if the client did not keep them; and its result."""
    name = word(part.get("toolId")).removeprefix("copilot_")
    call_id = word(part.get("toolCallId")) or digest(name, *strings(part))
    details, extra = mapping(part.get("resultDetails")), mapping(part.get("toolSpecificData"))
    call = _call(call_id, name, _shown_input(part, details, extra), part)
    if part.get("isComplete") is False:
        return [call]
    return [call, _shown_result(part, call_id, details, extra)]


def _shown_input(part: dict[str, Any], details: dict[str, Any], extra: dict[str, Any]) -> Any:
    given = extra.get("rawInput", details.get("input"))
    if isinstance(given, str):
        value = decode_value(given.encode("utf-8", "replace"))
        given = value if isinstance(value, dict) else {"input": given}
    if isinstance(given, dict) and given:
        return given
    line = extra.get("commandLine", extra.get("command"))
    command = word(line) or word(mapping(line).get("toolEdited")) or word(mapping(line).get("original"))
    if command:
        return {"command": command}
    said = part.get("invocationMessage")
    paths = [uri_path(uri) for uri in mapping(mapping(said).get("uris"))]
    return {"message": _string(said)} | ({"path": paths[0]} if paths else {})


def _shown_result(part: dict[str, Any], call_id: str, details: dict[str, Any], extra: dict[str, Any]) -> Block:
    output = [_string(one.get("value")) for one in _dicts(details.get("output"))]
    printed = word(mapping(extra.get("terminalCommandOutput")).get("text"))
    text = "\n".join(filter(None, [*output, printed])) or _string(part.get("pastTenseMessage"))
    confirmed = part.get("isConfirmed")
    status = exit_code(mapping(extra.get("terminalCommandState")).get("exitCode"))
    if confirmed is False or (isinstance(confirmed, dict) and confirmed.get("type") in _DENIED):
        end = CallEnd(call_id, True, "rejected")
    elif details.get("isError") is True:
        end = CallEnd(call_id, True, error_class(text), status)
    else:
        end = CallEnd(call_id, bool(status), "exit_status" if status else "", status)
    return Block("result", text, "tool_output", result=end)


def _call(call_id: str, name: str, given: Any, data: Any) -> Block:
    return call_block(call_id, name, given, data, _KIND_OF.get(name) or tool_kind(name, given))


def _result_text(content: Any) -> str:
    """Return the text of a result: texts, and trees of text with line breaks."""
    text = ""
    for part in listing(content):
        stack = [part]
        text += "\n" if text else ""
        while stack:
            item = stack.pop()
            if isinstance(item, dict):
                piece = word(item.get("text")) or word(item.get("value"))
                text += "\n" if piece and item.get("lineBreakBefore") and text else ""
                text += piece
                stack += [] if piece else reversed([one for one in item.values() if isinstance(one, dict | list)])
            elif isinstance(item, list):
                stack += reversed(item)
    return text


def _dicts(value: Any) -> list[dict[str, Any]]:
    """Return the objects in a list, and in the lists in it."""
    flat = [one for item in listing(value) for one in (item if isinstance(item, list) else [item])]
    return [one for one in flat if isinstance(one, dict)]


def _string(value: Any) -> str:
    """Return a text that is plain or Markdown."""
    return word(value) or word(mapping(value).get("value"))


def _path(target: Any) -> str:
    about = mapping(target)
    inner = about.get("uri", about.get("location"))
    return word(about.get("fsPath")) or word(about.get("path")) or (uri_path(inner) if isinstance(inner, str) else _path(inner) if isinstance(inner, dict) else "")  # fmt: skip
