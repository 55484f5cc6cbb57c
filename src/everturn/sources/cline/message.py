"""Convert elements of the history (`api_conversation_history.json`) and of the panel (`ui_messages.json`) into messages.

A history element with role `user` has several writers: tools (results), the human (typed text), the extension (context). Each
gets a message of its own, whose bytes are those of its content blocks.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec.structs import replace

from everturn.model.conversation import Block, Message, TokenUsage
from everturn.sources.cline.calls import (
    ENVIRONMENT,
    HUMAN_TOOLS,
    call_end,
    find_time,
    is_remark,
    named_call,
    native_call,
    parse_answer,
    parse_result_head,
    split_typed,
)
from everturn.sources.toolkit.line_reader import listing, mapping
from everturn.sources.toolkit.values import (
    count,
    decode_value,
    milliseconds,
    strings,
    text_blocks,
    unknown_block,
    unknown_message,
    word,
)

_TASK_TEXTS = ("<task>", "New message to respond to", "New instructions for task continuation")


class ClineSegment(NamedTuple):
    """A range of content blocks by one writer."""

    first: int
    last: int
    kind: str  # result human context


def split_segments(blocks: list[Any]) -> list[ClineSegment]:
    """Return the segments of a user element's content, in order."""
    segments: list[ClineSegment] = []
    for number, block in enumerate(blocks):
        kind = _segment_kind(block, segments[-1].kind if segments else "")
        if kind == "same":
            segments[-1] = segments[-1]._replace(last=number)
        else:
            segments.append(ClineSegment(number, number, kind))
    return segments


def segment_message(blocks: list[Any], kind: str) -> Message:
    if kind == "result":
        return _result_message(blocks)
    texts = [text for block in blocks if (text := _text(block))]
    others = [other for block in blocks if (other := _other_block(block)) is not None]
    if kind == "context":
        context = [Block("text", text, "meta") for text in texts]
        return Message("user", "injected", "context", blocks=(*context, *others))
    prompt: list[Block] = []
    for text in texts:
        parts = split_typed(text)
        prompt += [Block("text", one, "prompt") for one in parts.typed or [text]]
        prompt += text_blocks(parts.around, "meta") if parts.typed else ()
    return Message("user", "human", "text", blocks=(*prompt, *others), starts_turn=True)


def answer_message(element: dict[str, Any]) -> Message:
    content = element.get("content")
    blocks: list[Block] = []
    for block in [content] if isinstance(content, str) else listing(content):
        blocks += _answer_blocks(block)
    if word(element.get("type")) == "reasoning":
        blocks += [Block("thinking", text, "thinking") for text in strings(element.get("summary"), "type")]
    at, precision = milliseconds(element.get("ts"))
    model = word(mapping(element.get("modelInfo")).get("modelId"))
    return Message(
        "assistant", "model", "text", at, precision, word(element.get("id")), model=model, blocks=tuple(blocks),
        usage=_answer_usage(element),
    )  # fmt: skip


def unknown_element(element: dict[str, Any]) -> Message:
    """Return the message of an element of unknown role, or without content."""
    return unknown_message(element, "role", "type")


def is_summary(element: dict[str, Any]) -> bool:
    """Return whether an element replaces older ones that were condensed."""
    return element.get("isSummary") is True or element.get("isTruncationMarker") is True


def summary_message(element: dict[str, Any]) -> Message:
    """Return the message of an element that replaces older ones."""
    content = element.get("content")
    text = content if isinstance(content, str) else "\n".join(filter(None, map(_text, listing(content))))
    role = "assistant" if element.get("role") == "assistant" else "user"
    return Message(role, "injected", "summary", blocks=text_blocks(text, "summary"))


def environment_details(blocks: list[Any]) -> str:
    """Return the environment details among some content blocks; "" when there are none."""
    return next((text for block in blocks if (text := _text(block)).startswith(ENVIRONMENT)), "")


def element_time(element: dict[str, Any], blocks: list[Any]) -> tuple[int | None, str]:
    """Return the time of an element: its own, or the one in its environment details."""
    at, precision = milliseconds(element.get("ts"))
    return (at, precision) if at is not None else find_time(environment_details(blocks))


def _segment_kind(block: Any, before: str) -> str:
    kind, text = word(mapping(block).get("type")), _text(block)
    if kind == "tool_result" or parse_result_head(text) is not None:
        return "result"
    if is_remark(text):
        return "human" if split_typed(text).typed else "context"
    if text.startswith(_TASK_TEXTS):
        return "human"
    return "same" if before in ("result", "human") else "human"


def _text(block: Any) -> str:
    if isinstance(block, str):
        return block
    one = mapping(block)
    text = one.get("text")
    return text if isinstance(text, str) and one.get("type") in ("text", None) else ""


def _other_block(block: Any) -> Block | None:
    """Return the block of content that is no text; None for text."""
    if isinstance(block, str) or isinstance(mapping(block).get("text"), str):
        return None
    kind = word(mapping(block).get("type"))
    return Block(kind, data=block) if kind in ("image", "document") else unknown_block(block)


def _result_message(blocks: list[Any]) -> Message:
    first = mapping(blocks[0])
    is_native = first.get("type") == "tool_result"
    text = _content_text(first.get("content")) if is_native else _text(blocks[0])
    head = parse_result_head(text)
    name = head.name if head else ""
    identity = word(first.get("tool_use_id")) if is_native else head.call_id if head else ""
    texts = [head.rest if head else text, *(_text(block) or "[image]" for block in blocks[1:])]
    whole = "\n".join(part for part in texts if part)
    is_request = name in HUMAN_TOOLS
    parts = split_typed(whole, steered=not is_request)
    end = call_end(identity, name, whole, first.get("is_error") is True)
    output = parts.around if parts.typed else whole
    result = Block("result", output, "tool_output", result=end, data=blocks[0] if is_native else None)
    if not parts.typed:
        return Message("tool", "tool", "result", blocks=(result,))
    typed = [Block("text", one, "prompt") for one in parts.typed]
    kind = "text" if is_request else "queued"
    return Message("user", "human", kind, blocks=(result, *typed), starts_turn=is_request)


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_text(block) or f"[{word(mapping(block).get('type')) or 'block'}]" for block in listing(content))


def _answer_blocks(block: Any) -> list[Block]:
    one = mapping(block)
    kind, text = word(one.get("type")), _text(block)
    if text:
        return parse_answer(text)
    if kind == "tool_use":
        return native_call(one)
    if kind in ("thinking", "reasoning"):
        return [Block("thinking", word(one.get("thinking") or one.get("text")), "thinking", data=block)]
    if kind in ("redacted_thinking", "text", "image", "document"):
        return [Block({"redacted_thinking": "thinking"}.get(kind, kind), data=block)]
    return [unknown_block(block)]


def _answer_usage(element: dict[str, Any]) -> TokenUsage | None:
    """Return the tokens of an answer. The prompt's count includes those read from the cache."""
    tokens = mapping(mapping(element.get("metrics")).get("tokens"))
    prompt, completion, cached = (count(tokens.get(key)) or 0 for key in ("prompt", "completion", "cached"))
    return TokenUsage(max(prompt - cached, 0), completion, cached) if prompt or completion else None


# --- the panel ---
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
_APPROVAL = "REQ_APP"


def panel_kind(element: dict[str, Any]) -> str:
    """Return the kind of a panel element; "" for any other element."""
    return word(element.get("say")) or word(element.get("ask"))


def panel_message(element: dict[str, Any], is_first: bool = False) -> Message | None:
    """Return the message of an element; None when it holds none. The first text is the task of the human."""
    kind, text = panel_kind(element), word(element.get("text"))
    if kind in _SILENT:
        return None
    message = _spoken_message("task" if is_first and kind == "text" else kind, text, element)
    if message is None:
        return None
    at, precision = milliseconds(element.get("ts"))
    return replace(message, at=at, precision=precision, model=word(mapping(element.get("modelInfo")).get("modelId")))


def request_tokens(element: dict[str, Any]) -> list[int]:
    """Return the tokens recorded with a request, in the order of `TokenUsage`; nothing when there are none."""
    request = _parse_json(word(element.get("text")))
    tokens = [count(request.get(key)) or 0 for key in ("tokensIn", "tokensOut", "cacheReads", "cacheWrites")]
    return tokens if any(tokens) else []


def _parse_json(text: str) -> dict[str, Any]:
    return mapping(decode_value(text.encode("utf-8", "replace")))


def _spoken_message(kind: str, text: str, element: dict[str, Any]) -> Message | None:
    if kind in _HUMAN:
        return Message("user", "human", "text", blocks=_prompt_blocks(text, element), starts_turn=True)
    if kind in _ANSWERS:
        blocks = _panel_answer(kind, text)
        return Message("assistant", "model", "text", blocks=blocks) if blocks else None
    if kind == THOUGHT:
        blocks = text_blocks(text or word(element.get("reasoning")), "thinking", "thinking")
        return Message("assistant", "model", "text", blocks=blocks) if blocks else None
    if kind in _CALLS:
        return Message("assistant", "model", "text", blocks=tuple(_panel_call(kind, text)))
    if kind == REQUEST:
        return _request_message(text)
    return _machine_message(kind, text, element)


def _machine_message(kind: str, text: str, element: dict[str, Any]) -> Message | None:
    if kind in _OUTPUTS:
        return Message("tool", "tool", "output", blocks=text_blocks(text, "tool_output")) if text else None
    if kind in COMPACTED:
        summary = "\n".join([text, *strings(element.get("contextCondense"))]).strip()
        return Message("system", "system", "compaction", blocks=text_blocks(summary, "summary"))
    if kind in NOTICES:
        return Message("system", "system", "notice", blocks=text_blocks(text, "meta"))
    return unknown_message(element, "type", "say", "ask")


def _prompt_blocks(text: str, element: dict[str, Any]) -> tuple[Block, ...]:
    images = [Block("image", data=image) for image in listing(element.get("images"))]
    return (*text_blocks(text, "prompt"), *images)


def _panel_answer(kind: str, text: str) -> tuple[Block, ...]:
    """Return the blocks of an answer: the history has most of them as calls, so these are calls here too."""
    if kind in ("plan_mode_respond", "act_mode_respond"):
        text = (word(_parse_json(text).get("response")) if text.startswith("{") else "") or text
        return tuple(named_call(kind, {"response": text})) if text else ()
    if kind == "completion_result":
        text = text.removesuffix(_CHANGED)
        return tuple(named_call("attempt_completion", {"result": text})) if text else ()
    return text_blocks(text.removesuffix(_CHANGED), "answer")


def _panel_call(kind: str, text: str) -> list[Block]:
    arguments = _parse_json(text) if text.startswith("{") else {}
    if kind == "tool":
        name = word(arguments.pop("tool", "")) or "tool"
        return named_call(name, arguments)
    if kind == "command":
        return named_call("execute_command", {"command": text.removesuffix(_APPROVAL)})
    if kind == "use_mcp_server":
        arguments = {**arguments, "server_name": arguments.get("serverName")}
        return named_call(word(arguments.get("type")) or "use_mcp_tool", arguments)
    return named_call("ask_followup_question" if kind == "followup" else kind, arguments or {"text": text})


def _request_message(text: str) -> Message | None:
    """Return the message of a request to the model: the result of the previous call, and the environment details."""
    sent, mark, rest = word(_parse_json(text).get("request")).partition(ENVIRONMENT)
    details = text_blocks(mark + rest, "meta")
    if (head := parse_result_head(sent.lstrip())) is not None:
        output = "" if head.name in HUMAN_TOOLS else head.rest.rstrip()  # the human's words are elements of their own
        result = Block("result", output, "tool_output", result=call_end(head.call_id, head.name, output))
        return Message("tool", "tool", "result", blocks=(result, *details))
    return Message("user", "injected", "context", blocks=details) if details else None
