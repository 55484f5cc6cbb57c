"""What the human was shown: `ui_messages.json`, element by element."""

from __future__ import annotations

from typing import Any

from everturn.model.conversation import Block, Message, TokenUsage
from everturn.sources.cline.calls import end_of, panel_call
from everturn.sources.cline.marks import ENVIRONMENT, TALKING, result_in
from everturn.sources.foreign import count, decode_value, milliseconds, strings, word
from everturn.sources.wholefile import record

REQUEST = "api_req_started"
THOUGHT = "reasoning"

_HUMAN = frozenset(("task", "user_feedback", "user_feedback_diff"))
_ANSWERS = frozenset(("text", "completion_result", "plan_mode_respond", "act_mode_respond", "qna_respond"))
_CALLS = frozenset(
    "tool command followup use_mcp_server browser_action browser_action_launch new_task use_subagents condense".split()
)
_OUTPUTS = frozenset(("command_output", "mcp_server_response", "browser_action_result", "codebase_search_result", "subtask_result"))  # fmt: skip
NOTICES = frozenset(
    "error error_retry api_req_failed api_req_retried api_req_retry_delayed diff_error clineignore_error rooignore_error info "
    "shell_integration_warning shell_integration_warning_with_suggestion mistake_limit_reached command_permission_denied "
    "auto_approval_max_req_reached hook_status hook_output_stream mcp_notification condense_context_error "
    "too_many_tools_warning api_req_rate_limit_wait conditional_rules_applied".split()
)
COMPACTED = frozenset(("condense_context", "sliding_window_truncation", "summarize_task"))
_SILENT = frozenset(
    "checkpoint_created checkpoint_saved resume_task resume_completed_task api_req_finished api_req_deleted deleted_api_reqs "
    "load_mcp_documentation mcp_server_request_started task_progress subagent_usage user_edit_todos report_bug image "
    "generate_explanation partial_tool_result state_snapshot subagent".split()
)
KNOWN = _HUMAN | _ANSWERS | _CALLS | _OUTPUTS | NOTICES | COMPACTED | _SILENT | {REQUEST, THOUGHT}
_CHANGED = "HAS_CHANGES"
_ASKED = "REQ_APP"


def kind_of(element: dict[str, Any]) -> str:
    """What is said or asked."""
    return word(element.get("say")) or word(element.get("ask"))


def shown_message(element: dict[str, Any], first: bool = False) -> Message | None:
    """The message of an element; None when it holds none. The first text is what the human asked for."""
    kind, text = kind_of(element), word(element.get("text"))
    if kind in _SILENT:
        return None
    message = _build_message("task" if first and kind == "text" else kind, text, element)
    if message is None:
        return None
    at, precision = milliseconds(element.get("ts"))
    return Message(
        message.role, message.origin, message.kind, at, precision, model=word(record(element.get("modelInfo")).get("modelId")),
        blocks=message.blocks, starts_turn=message.starts_turn,
    )  # fmt: skip


def usage(element: dict[str, Any]) -> TokenUsage | None:
    """The tokens noted with a request."""
    noted = record(decode_value(word(element.get("text")).encode("utf-8", "replace")))
    tokens = [count(noted.get(key)) or 0 for key in ("tokensIn", "tokensOut", "cacheReads", "cacheWrites")]
    return TokenUsage(*tokens) if any(tokens) else None


def _build_message(kind: str, text: str, element: dict[str, Any]) -> Message | None:
    if kind in _HUMAN:
        return Message("user", "human", "text", blocks=_prompt_blocks(text, element), starts_turn=True)
    if kind in _ANSWERS:
        blocks = _answer(kind, text)
        return Message("assistant", "model", "text", blocks=blocks) if blocks else None
    if kind == THOUGHT:
        words = text or word(element.get("reasoning"))
        return Message("assistant", "model", "text", blocks=(Block("thinking", words, "thinking"),)) if words else None
    if kind in _CALLS:
        return Message("assistant", "model", "text", blocks=tuple(_call(kind, text)))
    if kind == REQUEST:
        return _request(text)
    return _machine_message(kind, text, element)


def _machine_message(kind: str, text: str, element: dict[str, Any]) -> Message | None:
    if kind in _OUTPUTS:
        return Message("tool", "tool", "output", blocks=(Block("text", text, "tool_output"),)) if text else None
    if kind in COMPACTED:
        words = "\n".join([text, *strings(element.get("contextCondense"))]).strip()
        return Message("system", "system", "compaction", blocks=(Block("text", words, "summary"),) if words else ())
    if kind in NOTICES:
        return Message("system", "system", "notice", blocks=(Block("text", text, "meta"),) if text else ())
    words = "\n".join(strings(element, "type", "say", "ask"))
    return Message("system", "system", "unknown", blocks=(Block("unknown", words, "meta"),) if words else ())


def _prompt_blocks(text: str, element: dict[str, Any]) -> tuple[Block, ...]:
    images = element.get("images")
    pictures = [Block("image", data=image) for image in images] if isinstance(images, list) else []
    return (*((Block("text", text, "prompt"),) if text else ()), *pictures)


def _answer(kind: str, text: str) -> tuple[Block, ...]:
    if kind in ("plan_mode_respond", "act_mode_respond") and text.startswith("{"):
        noted = record(decode_value(text.encode("utf-8", "replace")))
        text = word(noted.get("response")) or text
    text = text.removesuffix(_CHANGED)
    return (Block("text", text, "answer"),) if text else ()


def _call(kind: str, text: str) -> list[Block]:
    given = record(decode_value(text.encode("utf-8", "replace"))) if text.startswith("{") else {}
    if kind == "tool":
        name = word(given.get("tool")) or "tool"
        return panel_call(name, {key: value for key, value in given.items() if key != "tool"})
    if kind == "command":
        return panel_call("execute_command", {"command": text.removesuffix(_ASKED)})
    name = {"followup": "ask_followup_question", "use_mcp_server": word(given.get("type")) or "use_mcp_tool"}.get(
        kind, kind
    )
    if kind == "use_mcp_server":
        given = {**given, "server_name": given.get("serverName")}
    return panel_call(name, given or {"text": text})


def _request(text: str) -> Message | None:
    """What was sent to the model: the results of the call before, and details of the environment."""
    request = word(record(decode_value(text.encode("utf-8", "replace"))).get("request"))
    said, mark, rest = request.partition(ENVIRONMENT)
    around = [Block("text", mark + rest, "meta")] if mark else []
    head = result_in(said.lstrip())
    if head is not None and head.name not in TALKING:
        words = head.rest.rstrip()
        end = end_of(head.call_id, head.name, words)
        return Message("tool", "tool", "result", blocks=(Block("result", words, "tool_output", result=end), *around))
    return Message("user", "injected", "context", blocks=tuple(around)) if around else None
