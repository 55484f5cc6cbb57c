"""What the model was told and answered: `api_conversation_history.json`, element by element.

An element with role `user` holds several speakers: results of tools, what a human typed, what the extension adds. Each gets
a message of its own, whose bytes are those of its content blocks.

What the human was shown: `ui_messages.json`, element by element.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from everturn.model.conversation import Block, Message, TokenUsage
from everturn.sources.cline.calls import (
    ENVIRONMENT,
    TALKING,
    end_of,
    is_remark,
    moment_in,
    native_call,
    panel_call,
    result_in,
    text_blocks,
    words_in,
)
from everturn.sources.toolkit.json_document import entries, record
from everturn.sources.toolkit.values import count, decode_value, milliseconds, strings, word

_NEW_WORDS = ("<task>", "New message to respond to", "New instructions for task continuation")


class ClineSegment(NamedTuple):
    """Some content blocks of one speaker: from the first up to the last."""

    first: int
    last: int
    kind: str  # result human context


def segments(blocks: list[Any]) -> list[ClineSegment]:
    """The speakers in the content of a user element, in order."""
    found: list[ClineSegment] = []
    for number, block in enumerate(blocks):
        kind = _kind(block, found[-1].kind if found else "")
        if kind == "same":
            found[-1] = found[-1]._replace(last=number)
        else:
            found.append(ClineSegment(number, number, kind))
    return found


def segment_message(blocks: list[Any], kind: str) -> Message:
    """The message of one speaker."""
    if kind == "result":
        return _result(blocks)
    texts = [_text(block) for block in blocks]
    rest = [made for block in blocks if (made := _wordless_block(block)) is not None]
    if kind == "context":
        found = [Block("text", text, "meta") for text in texts if text]
        return Message("user", "injected", "context", blocks=(*found, *rest))
    found = []
    for text in filter(None, texts):
        words = words_in(text)
        found += [Block("text", one, "prompt") for one in words.typed or [text]]
        found += [Block("text", words.around, "meta")] if words.typed and words.around else []
    return Message("user", "human", "text", blocks=(*found, *rest), starts_turn=True)


def answer(element: dict[str, Any]) -> Message:
    """The message of an assistant element."""
    content = element.get("content")
    blocks: list[Block] = []
    for block in [content] if isinstance(content, str) else entries(content):
        blocks += _answer_blocks(block)
    if word(element.get("type")) == "reasoning":
        blocks += [Block("thinking", text, "thinking") for text in strings(element.get("summary"), "type")]
    at, precision = milliseconds(element.get("ts"))
    model = word(record(element.get("modelInfo")).get("modelId"))
    return Message(
        "assistant", "model", "text", at, precision, word(element.get("id")), model=model, blocks=tuple(blocks),
        usage=_usage(element),
    )  # fmt: skip


def unknown_element(element: dict[str, Any]) -> Message:
    """An element of a role this version does not know, or without a content."""
    text = "\n".join(strings(element, "role", "type"))
    return Message("system", "system", "unknown", blocks=(Block("unknown", text, "meta"),) if text else ())


def is_summary(element: dict[str, Any]) -> bool:
    """Whether an element stands for older ones that were condensed."""
    return element.get("isSummary") is True or element.get("isTruncationMarker") is True


def summary(element: dict[str, Any]) -> Message:
    """What the client wrote in the place of older elements."""
    content = element.get("content")
    text = content if isinstance(content, str) else "\n".join(filter(None, map(_text, entries(content))))
    role = "assistant" if element.get("role") == "assistant" else "user"
    return Message(role, "injected", "summary", blocks=(Block("text", text, "summary"),) if text else ())


def details(blocks: list[Any]) -> str:
    """The details of the environment among some blocks."""
    return next((text for block in blocks if (text := _text(block)).startswith(ENVIRONMENT)), "")


def moment(element: dict[str, Any], blocks: list[Any]) -> tuple[int | None, str]:
    """When an element was written: its own time, or the one that it tells the model."""
    at, precision = milliseconds(element.get("ts"))
    return (at, precision) if at is not None else moment_in(details(blocks))


def _kind(block: Any, before: str) -> str:
    kind, text = word(record(block).get("type")), _text(block)
    if kind == "tool_result" or result_in(text) is not None:
        return "result"
    if is_remark(text):
        return "human" if words_in(text).typed else "context"
    if text.startswith(_NEW_WORDS):
        return "human"
    return "same" if before in ("result", "human") else "human"


def _text(block: Any) -> str:
    if isinstance(block, str):
        return block
    one = record(block)
    text = one.get("text")
    return text if isinstance(text, str) and one.get("type") in ("text", None) else ""


def _wordless_block(block: Any) -> Block | None:
    """A block that is no text."""
    if isinstance(block, str) or isinstance(record(block).get("text"), str):
        return None
    kind = word(record(block).get("type"))
    if kind in ("image", "document"):
        return Block(kind, data=block)
    return Block("unknown", "\n".join(strings(block, "type")), "meta", data=block)


def _result(blocks: list[Any]) -> Message:
    first = record(blocks[0])
    native = first.get("type") == "tool_result"
    text = _content(first.get("content")) if native else _text(blocks[0])
    head = result_in(text)
    name = head.name if head else ""
    identity = word(first.get("tool_use_id")) if native else head.call_id if head else ""
    parts = [head.rest if head else text, *(_text(block) or "[image]" for block in blocks[1:])]
    whole = "\n".join(part for part in parts if part)
    words = words_in(whole, steered=name not in TALKING)
    shown = words.around if words.typed else whole
    end = end_of(identity, name, whole, first.get("is_error") is True)
    result = Block("result", shown, "tool_output", result=end, data=blocks[0] if native else None)
    if not words.typed:
        return Message("tool", "tool", "result", blocks=(result,))
    typed = [Block("text", one, "prompt") for one in words.typed]
    talks = name in TALKING
    return Message("user", "human", "text" if talks else "queued", blocks=(result, *typed), starts_turn=talks)


def _content(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_text(block) or f"[{word(record(block).get('type')) or 'block'}]" for block in entries(content))


def _answer_blocks(block: Any) -> list[Block]:
    one = record(block)
    kind, text = word(one.get("type")), _text(block)
    if text:
        return text_blocks(text)
    if kind == "tool_use":
        return native_call(one)
    if kind in ("thinking", "reasoning"):
        return [Block("thinking", word(one.get("thinking") or one.get("text")), "thinking", data=block)]
    if kind in ("redacted_thinking", "text", "image", "document"):
        return [Block({"redacted_thinking": "thinking"}.get(kind, kind), data=block)]
    return [Block("unknown", "\n".join(strings(block, "type")), "meta", data=block)]


def _usage(element: dict[str, Any]) -> TokenUsage | None:
    """Tokens; what was read from the cache is part of the prompt here."""
    tokens = record(record(element.get("metrics")).get("tokens"))
    given, said, cached = (count(tokens.get(key)) or 0 for key in ("prompt", "completion", "cached"))
    return TokenUsage(max(given - cached, 0), said, cached) if given or said else None


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
