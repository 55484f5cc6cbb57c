"""What a record is. Both eras look the same after `open_record`.

Until August 2025 a rollout began with `{id, timestamp, instructions}` and held items as they are; since then every line is
`{timestamp, type, payload}`. Items (`response_item`) are what was said. Events (`event_msg`) say most of it once more: only
a few hold something of their own.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from everturn.sources.foreign import plain, strings, word
from everturn.sources.linewise import Rec

HEADER, STATE = "(header)", "(state)"
ITEM, EVENT = "response_item", "event_msg"

ROLES = frozenset(("user", "assistant", "developer", "system"))

#: Items of the model, and what the client adds.
CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call", "tool_search_call"))
DONE_BY_PROVIDER = frozenset(("web_search_call", "image_generation_call"))
OUTPUTS = frozenset(("function_call_output", "custom_tool_call_output", "tool_search_output"))
_SILENT_ITEMS = frozenset(
    "ghost_snapshot compaction compaction_summary context_compaction compaction_trigger additional_tools".split()
)
_ITEMS = frozenset(("message", "reasoning", "agent_message")) | CALLS | DONE_BY_PROVIDER | OUTPUTS | _SILENT_ITEMS

#: Events that repeat an item, and those that hold nothing that is not in items or in other events.
MIRRORS = frozenset(("user_message", "agent_message", "agent_reasoning", "agent_reasoning_raw_content"))
_SILENT_EVENTS = frozenset(
    "task_started turn_started context_compacted session_configured exec_command_begin exec_command_end "
    "exec_approval_request apply_patch_approval_request patch_apply_begin patch_apply_updated patch_apply_end "
    "mcp_tool_call_begin mcp_tool_call_end web_search_begin web_search_end view_image_tool_call image_generation_begin "
    "image_generation_end dynamic_tool_call_request dynamic_tool_call_response agent_reasoning_section_break turn_diff "
    "plan_update collab_agent_spawn_begin collab_agent_spawn_end collab_agent_interaction_begin "
    "collab_agent_interaction_end collab_waiting_begin collab_waiting_end collab_close_begin collab_close_end "
    "collab_resume_begin collab_resume_end sub_agent_activity raw_response_item item_started thread_settings_applied "
    "mcp_startup_update mcp_startup_complete shutdown_complete terminal_interaction thread_name_updated "
    "realtime_conversation_started realtime_conversation_closed".split()
)
#: Events whose words stand nowhere else.
NOTICES = frozenset(
    "error stream_error warning guardian_warning guardian_assessment model_reroute deprecation_notice background_event "
    "thread_rolled_back entered_review_mode exited_review_mode thread_goal_updated item_completed".split()
)
ENDS = frozenset(("task_complete", "turn_complete"))
#: What `item_completed`, since 2026 the event for everything, says by the type of its item: the older event that says it.
#: A plan, and what is not known, has words of its own.
_COMPLETED = {
    "UserMessage": "user_message",
    "AgentMessage": "agent_message",
    "Reasoning": "agent_reasoning",
    **dict.fromkeys(
        "CommandExecution FileChange McpToolCall DynamicToolCall CollabAgentToolCall WebSearch ImageView ImageGeneration "
        "ContextCompaction HookPrompt".split(),
        "raw_response_item",
    ),
}
_EVENTS = MIRRORS | _SILENT_EVENTS | NOTICES | ENDS | {"token_count", "turn_aborted"}
_OUTER = frozenset(
    ("session_meta", "turn_context", "compacted", "world_state", "inter_agent_communication", "token_usage_record")
)


class CodexRecord(NamedTuple):
    """A record of either era."""

    outer: str  # session_meta response_item event_msg turn_context compacted … or one of ours
    kind: str  # type of the item or event
    item: Rec  # what it holds
    at: Any  # time as written
    name: str  # type to be counted
    is_known: bool


def open_record(record: Rec) -> CodexRecord:
    """The record without its wrapping."""
    outer, payload = record.get("type"), record.get("payload")
    if isinstance(payload, dict) and isinstance(outer, str):
        kind = word(payload.get("type")) if outer in (ITEM, EVENT) else ""
        name, known = _record_name(outer, kind)
        if kind == "item_completed":
            kind, payload = _unwrap_completed(payload)
        return CodexRecord(
            outer, kind, payload, record.get("timestamp"), name, known and _has_known_role(kind, payload)
        )
    if isinstance(outer, str):
        known = outer in _ITEMS
        is_known = known and _has_known_role(outer, record)
        return CodexRecord(ITEM if known else "", outer, record, record.get("timestamp"), plain(outer), is_known)
    if "record_type" in record and outer is None:
        return CodexRecord(STATE, "", record, None, STATE, True)
    if _is_header(record):
        return CodexRecord(HEADER, "", record, record.get("timestamp"), HEADER, True)
    return CodexRecord("", "", record, record.get("timestamp"), "?", False)


def is_silent(event: CodexRecord) -> bool:
    """Whether a known record is about the session rather than of it."""
    if event.outer == ITEM:
        return event.kind in _SILENT_ITEMS
    if event.outer == EVENT:
        return event.kind in _SILENT_EVENTS
    return event.outer in ("session_meta", "turn_context", "world_state", "token_usage_record", HEADER, STATE)


def _has_known_role(kind: str, item: Rec) -> bool:
    return kind != "message" or word(item.get("role")) in ROLES


def _unwrap_completed(payload: Rec) -> tuple[str, Rec]:
    """The older event that says the same, with its words where that one has them."""
    item = payload.get("item")
    kind = _COMPLETED.get(word(item.get("type")), "") if isinstance(item, dict) else ""
    if not kind or not isinstance(item, dict):
        return "item_completed", payload
    spoken = [item.get("content"), item.get("summary_text"), item.get("raw_content")]
    return kind, {"type": kind, "message": "".join(strings(spoken, "type", "text_elements"))}


@lru_cache(maxsize=1024)
def _record_name(outer: str, kind: str) -> tuple[str, bool]:
    if outer == ITEM:
        return plain(f"{outer}/{kind}"), kind in _ITEMS
    if outer == EVENT:
        return plain(f"{outer}/{kind}"), kind in _EVENTS
    return plain(outer), outer in _OUTER


def _is_header(record: Rec) -> bool:
    needed = {"id", "timestamp", "instructions"}
    return needed <= record.keys() <= needed | {"git"} and isinstance(record["id"], str)
