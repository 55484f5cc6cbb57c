"""Parse tool calls and the marks that the extension puts into texts.

Calls are tags in the model's text, content blocks, or elements of the panel. The extension's marks are the head of a tool
result, the tags around text that a human typed, and its own remarks.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from everturn.model.conversation import Block, CallEnd, CallStart
from everturn.sources.toolkit.line_reader import mapping
from everturn.sources.toolkit.values import (
    call_start,
    call_text,
    digest,
    error_class,
    exit_status,
    milliseconds,
    strings,
    text_blocks,
    word,
)

ENVIRONMENT = "<environment_details>"

#: Tools that hand over to the human: their result is the human's next request.
HUMAN_TOOLS = frozenset(
    "plan_mode_respond act_mode_respond attempt_completion condense new_task summarize_task".split()
)

_RESULT = re.compile(r"\[([a-z][a-z_]{1,60})( .*?)?\] Result:\n*", re.DOTALL)
_QUOTED = re.compile(r" for '(.*)'", re.DOTALL)
_REMARKS = ("[TASK RESUMPTION]", "[ERROR]", "[NOTE]", "<explicit_instructions", "<hook_context", ENVIRONMENT)
_TYPED = re.compile(r"<(task|feedback|user_message)>\n?(.*?)\n?</\1>", re.DOTALL)
_STEERED = re.compile(r"feedback:\s*<(feedback)>\n?(.*?)\n?</\1>", re.DOTALL)
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\) Files")
_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)")
_LOCAL = re.compile(
    r"# Current Time\n(\d{1,2})/(\d{1,2})/(\d{4}), (\d{1,2}):(\d\d):(\d\d)\s([AP])M \([^()\n]*UTC([+-]\d{1,2}):(\d\d)\)"
)


class ClineResultHead(NamedTuple):
    """The head of a result: the tool, the call it answers, and the text after it."""

    name: str
    call_id: str
    rest: str


class ClineText(NamedTuple):
    """A text split into the parts a human typed and the rest."""

    typed: list[str]
    around: str


def parse_result_head(text: str) -> ClineResultHead | None:
    """Return the head of the result that a text begins with; None when it begins with none."""
    if (head := _RESULT.match(text)) is None:
        return None
    quoted = _QUOTED.fullmatch(head[2] or "")
    subject = quoted[1] if quoted else (head[2] or "").strip()
    return ClineResultHead(head[1], call_id(head[1], subject), text[head.end() :])


def call_id(name: str, subject: str) -> str:
    """Return an id that call and result have in common. Calls are answered one by one, so it need not be unique."""
    return f"{name}:{digest(subject.strip())}"


def is_remark(text: str) -> bool:
    return text.lstrip().startswith(_REMARKS)


def split_typed(text: str, steered: bool = False) -> ClineText:
    """Split off the tagged parts that a human typed; `steered`: only announced feedback, as the text may hold any tags."""
    pattern = _STEERED if steered else _TYPED
    typed = [match[2].strip() for match in pattern.finditer(text)]
    around = pattern.sub("", text).strip() if typed else text
    return ClineText([one for one in typed if one], around)


def find_time(text: str) -> tuple[int | None, str]:
    """Return the time in the environment details, if its notation is unambiguous; else (None, "")."""
    if (local := _LOCAL.search(text)) is None:
        iso = _ISO.search(text, max(text.find("# Current Time"), 0)) if "# Current Time" in text else None
        return milliseconds(iso[1]) if iso else (None, "")
    month, day, year, hour, minute, second = (int(part) for part in local.groups()[:6])
    hour = hour % 12 + (12 if local[7] == "P" else 0)
    zone = f"{int(local[8]):+03d}:{local[9]}"
    return milliseconds(f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{zone}")


def find_folder(text: str) -> str:
    """Return the working folder in the environment details; "" when they name none."""
    return match[1] if (match := _FOLDER.search(text)) else ""


# --- tool calls ---
_TOOLS = (
    "execute_command read_file write_to_file replace_in_file apply_diff insert_content search_and_replace edit_file "
    "search_files list_files list_code_definition_names codebase_search browser_action use_mcp_tool access_mcp_resource "
    "ask_followup_question attempt_completion plan_mode_respond act_mode_respond new_task condense summarize_task report_bug "
    "new_rule load_mcp_documentation web_fetch web_search use_skill switch_mode fetch_instructions update_todo_list "
    "generate_image run_slash_command use_subagents generate_explanation"
).split()
_CALL = re.compile(rf"^[ \t]*<({'|'.join(_TOOLS)})>(.*?)(?:</\1>|\Z)", re.DOTALL | re.MULTILINE)
_THOUGHT = re.compile(r"<thinking>\n?(.*?)\n?(?:</thinking>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<([a-z_]+)>")

#: Parameters with arbitrary text, tags included: they end at their last closing tag.
_FREE = frozenset("content diff result response arguments replace search line_replacements context todos".split())

#: The parameter that the head of the result quotes.
_SUBJECT = {
    "execute_command": "command", "search_files": "regex", "ask_followup_question": "question",
    "use_mcp_tool": "server_name", "access_mcp_resource": "server_name", "browser_action": "action", "web_fetch": "url",
    "web_search": "query", "codebase_search": "query", "fetch_instructions": "task",
}  # fmt: skip

#: Parameters that are the model's answer to the human.
_ANSWER = {"plan_mode_respond": "response", "act_mode_respond": "response", "attempt_completion": "result"}

#: The panel's names of tools.
_PANEL_TOOLS = {
    "readFile": "read_file", "newFileCreated": "write_to_file", "editedExistingFile": "replace_in_file",
    "appliedDiff": "apply_diff", "listFilesTopLevel": "list_files", "listFilesRecursive": "list_files",
    "listCodeDefinitionNames": "list_code_definition_names", "searchFiles": "search_files", "webFetch": "web_fetch",
    "webSearch": "web_search", "codebaseSearch": "codebase_search", "newTask": "new_task",
    "updateTodoList": "update_todo_list",
}  # fmt: skip
_FAILED = (
    "The tool execution failed", "<error>", "Error executing", "Error:", "Tool execution failed", "The model failed",
)  # fmt: skip
_DENIED = ("The user denied this operation", "The user rejected")
_HEAD = 400


def parse_answer(text: str) -> list[Block]:
    """Return the blocks of a model's text: prose, tagged thoughts and tagged calls."""
    blocks: list[Block] = []
    at = 0
    for match in _CALL.finditer(text):
        blocks += _prose_blocks(text[at : match.start()])
        blocks += named_call(match[1], _parse_parameters(match[2]))
        at = match.end()
    return blocks + _prose_blocks(text[at:])


def native_call(block: dict[str, Any]) -> list[Block]:
    """Return the blocks of a call that is a content block."""
    return _call_blocks(call_start(word(block.get("id")), word(block.get("name")), block.get("input")), block)


def named_call(name: str, arguments: dict[str, Any]) -> list[Block]:
    """Return the blocks of a call without an id, as in a tag or in the panel."""
    name = _PANEL_TOOLS.get(name, name)
    return _call_blocks(call_start(call_id(name, _call_subject(name, arguments)), name, arguments))


def call_end(identity: str, name: str, text: str, failed: bool = False) -> CallEnd:
    """Return how a call ended, judged by the text of its result."""
    head = text[:_HEAD].lstrip()
    is_denied = any(phrase in head for phrase in _DENIED)
    status = exit_status(head) if name in ("execute_command", "") else None
    failed = failed or is_denied or head.startswith(_FAILED)
    reason = "exit_status" if status else ""
    if failed:
        reason = "rejected" if is_denied else "invalid_input" if "SEARCH" in head else error_class(head)
    return CallEnd(identity, failed or bool(status), reason, status)


def _prose_blocks(text: str) -> list[Block]:
    blocks: list[Block] = []
    at = 0
    for match in _THOUGHT.finditer(text):
        blocks += text_blocks(text[at : match.start()].strip(), "answer")
        blocks.append(Block("thinking", match[1], "thinking"))
        at = match.end()
    return [*blocks, *text_blocks(text[at:].strip(), "answer")]


def _call_blocks(start: CallStart, data: Any = None) -> list[Block]:
    """Return the block of a call, followed by an answer block with its text for the human, if it has one."""
    key = _ANSWER.get(start.name, "")
    answer = word(mapping(start.input).get(key)) if key else ""
    text = "\n".join([start.name, *strings(start.input, key)]) if answer else call_text(start)
    return [Block("call", text, "tool_input", call=start, data=data), *text_blocks(answer, "answer")]


def _parse_parameters(body: str) -> dict[str, str]:
    parameters: dict[str, str] = {}
    at = 0
    while (match := _PARAMETER.search(body, at)) is not None:
        closing = f"</{match[1]}>"
        end = body.rfind(closing, match.end()) if match[1] in _FREE else body.find(closing, match.end())
        parameters[match[1]] = (body[match.end() : end] if end >= 0 else body[match.end() :]).strip("\n")
        at = end + len(closing) if end >= 0 else len(body)
    return parameters


def _call_subject(name: str, arguments: dict[str, Any]) -> str:
    if name in HUMAN_TOOLS:
        return ""
    subject = word(arguments.get(_SUBJECT.get(name, "path")))
    pattern = word(arguments.get("file_pattern") or arguments.get("filePattern")) if name == "search_files" else ""
    return f"{subject}' in '{pattern}" if pattern else subject
