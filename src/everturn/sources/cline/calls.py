"""Tool calls as tags in the model's text, as blocks of their own, and as the panel shows them; and how results went.

What the extension puts around words: the head of a tool's result, the tags around a human's words, its own remarks.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from everturn.model.conversation import Block, CallEnd, CallStart
from everturn.sources.toolkit.blocks import call_start, call_text, error_class, exit_status
from everturn.sources.toolkit.json_document import record
from everturn.sources.toolkit.values import digest, milliseconds, strings, word

ENVIRONMENT = "<environment_details>"

#: Tools that hand the word to the human: what comes back is their next request.
TALKING = frozenset("plan_mode_respond act_mode_respond attempt_completion condense new_task summarize_task".split())

_RESULT = re.compile(r"\[([a-z][a-z_]{1,60})( .*?)?\] Result:\n*", re.DOTALL)
_QUOTED = re.compile(r" for '(.*)'", re.DOTALL)
_OURS = ("[TASK RESUMPTION]", "[ERROR]", "[NOTE]", "<explicit_instructions", "<hook_context", ENVIRONMENT)
_TYPED = re.compile(r"<(task|feedback|user_message)>\n?(.*?)\n?</\1>", re.DOTALL)
_STEERED = re.compile(r"feedback:\s*<(feedback)>\n?(.*?)\n?</\1>", re.DOTALL)
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\) Files")
_ISO = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z)")
_LOCAL = re.compile(
    r"# Current Time\n(\d{1,2})/(\d{1,2})/(\d{4}), (\d{1,2}):(\d\d):(\d\d)\s([AP])M \([^()\n]*UTC([+-]\d{1,2}):(\d\d)\)"
)


class ClineResultHead(NamedTuple):
    """The head of a result: which tool, the call it answers, and the words after it."""

    name: str
    call_id: str
    rest: str


class ClineWords(NamedTuple):
    """A text taken apart: what a human typed, and what stands around it."""

    typed: list[str]
    around: str


def result_in(text: str) -> ClineResultHead | None:
    """The result that a text begins with."""
    if not text.startswith("["):
        return None
    found = _RESULT.match(text)
    if found is None:
        return None
    about = _QUOTED.fullmatch(found[2] or "")
    return ClineResultHead(
        found[1], call_id(found[1], about[1] if about else (found[2] or "").strip()), text[found.end() :]
    )


def call_id(name: str, about: str) -> str:
    """A name for a call that its result can be given, too. Calls are answered one by one, so it need not be unique."""
    return f"{name}:{digest(about.strip())}"


def is_remark(text: str) -> bool:
    """Whether the extension speaks."""
    return text.lstrip().startswith(_OURS)


def words_in(text: str, steered: bool = False) -> ClineWords:
    """What a human typed in a text with tags; `steered`: only what is announced as feedback, for texts may hold anything."""
    pattern = _STEERED if steered else _TYPED
    typed = [found[2].strip() for found in pattern.finditer(text)]
    around = pattern.sub("", text).strip() if typed else text
    return ClineWords([one for one in typed if one], around)


def moment_in(text: str) -> tuple[int | None, str]:
    """The time that the details of the environment name, where its form leaves no doubt."""
    found = _LOCAL.search(text)
    if found is None:
        iso = _ISO.search(text, max(text.find("# Current Time"), 0)) if "# Current Time" in text else None
        return milliseconds(iso[1]) if iso else (None, "")
    month, day, year, hour, minute, second = (int(part) for part in found.groups()[:6])
    hour = hour % 12 + (12 if found[7] == "P" else 0)
    zone = f"{int(found[8]):+03d}:{found[9]}"
    return milliseconds(f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{zone}")


def folder_in(text: str) -> str:
    """The working folder that the details of the environment name."""
    found = _FOLDER.search(text)
    return found[1] if found else ""


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

#: Parameters that may hold anything, also tags: they end at their last closing tag.
_FREE = frozenset("content diff result response arguments replace search line_replacements context todos".split())

#: Which parameter the head of the result quotes.
_ABOUT = {
    "execute_command": "command",
    "search_files": "regex",
    "ask_followup_question": "question",
    "use_mcp_tool": "server_name",
    "access_mcp_resource": "server_name",
    "browser_action": "action",
    "web_fetch": "url",
    "web_search": "query",
    "codebase_search": "query",
    "fetch_instructions": "task",
}

#: Parameters that are the model's words to the human.
_SAID = {"plan_mode_respond": "response", "act_mode_respond": "response", "attempt_completion": "result"}

#: Tools as the panel names them.
_SHOWN = {
    "readFile": "read_file",
    "newFileCreated": "write_to_file",
    "editedExistingFile": "replace_in_file",
    "appliedDiff": "apply_diff",
    "listFilesTopLevel": "list_files",
    "listFilesRecursive": "list_files",
    "listCodeDefinitionNames": "list_code_definition_names",
    "searchFiles": "search_files",
    "webFetch": "web_fetch",
    "webSearch": "web_search",
    "codebaseSearch": "codebase_search",
    "newTask": "new_task",
    "updateTodoList": "update_todo_list",
}
_FAILED = (
    "The tool execution failed",
    "<error>",
    "Error executing",
    "Error:",
    "Tool execution failed",
    "The model failed",
)
_DENIED = ("The user denied this operation", "The user rejected")
_HEAD = 400


def text_blocks(text: str) -> list[Block]:
    """The blocks of a model's text: its words, thoughts between tags, and calls as tags."""
    found: list[Block] = []
    at = 0
    for match in _CALL.finditer(text):
        found += _prose_blocks(text[at : match.start()])
        found += _tagged_call(match[1], match[2])
        at = match.end()
    return found + _prose_blocks(text[at:])


def native_call(block: dict[str, Any]) -> list[Block]:
    """A call that is a block of its own."""
    start = call_start(word(block.get("id")), word(block.get("name")), block.get("input"))
    return _call_blocks(start, block)


def panel_call(name: str, given: dict[str, Any]) -> list[Block]:
    """A call as the panel shows it."""
    name = _SHOWN.get(name, name)
    return _call_blocks(call_start(call_id(name, _call_subject(name, given)), name, given))


def end_of(identity: str, name: str, text: str, failed: bool = False) -> CallEnd:
    """How a call went, as far as the words of its result tell."""
    head = text[:_HEAD].lstrip()
    denied = any(words in head for words in _DENIED)
    status = exit_status(head) if name in ("execute_command", "") else None
    wrong = failed or denied or head.startswith(_FAILED)
    return CallEnd(
        identity,
        wrong or bool(status),
        "rejected" if denied else _failure_class(head) if wrong else "exit_status" if status else "",
        status,
    )


def _failure_class(head: str) -> str:
    return "invalid_input" if "SEARCH" in head else error_class(head)


def _prose_blocks(text: str) -> list[Block]:
    found: list[Block] = []
    at = 0
    for match in _THOUGHT.finditer(text):
        found += _answer(text[at : match.start()])
        found.append(Block("thinking", match[1], "thinking"))
        at = match.end()
    return found + _answer(text[at:])


def _answer(text: str) -> list[Block]:
    return [Block("text", text.strip(), "answer")] if text.strip() else []


def _tagged_call(name: str, body: str) -> list[Block]:
    given = _parameters(body)
    return _call_blocks(call_start(call_id(name, _call_subject(name, given)), name, given))


def _call_blocks(start: CallStart, data: Any = None) -> list[Block]:
    """The block of a call; what it says to the human stands beside it as an answer."""
    key = _SAID.get(start.name, "")
    said = word(record(start.input).get(key)) if key else ""
    text = "\n".join([start.name, *strings(start.input, key)]) if said else call_text(start)
    call = Block("call", text, "tool_input", call=start, data=data)
    return [call, Block("text", said, "answer")] if said else [call]


def _parameters(body: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while (match := _PARAMETER.search(body, at)) is not None:
        closing = f"</{match[1]}>"
        end = body.rfind(closing, match.end()) if match[1] in _FREE else body.find(closing, match.end())
        found[match[1]] = (body[match.end() : end] if end >= 0 else body[match.end() :]).strip("\n")
        at = end + len(closing) if end >= 0 else len(body)
    return found


def _call_subject(name: str, given: dict[str, Any]) -> str:
    if name in TALKING:
        return ""
    about = word(given.get(_ABOUT.get(name, "path")))
    pattern = word(given.get("file_pattern") or given.get("filePattern")) if name == "search_files" else ""
    return f"{about}' in '{pattern}" if pattern else about
