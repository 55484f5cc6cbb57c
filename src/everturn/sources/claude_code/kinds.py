"""The types of records this version knows, and how records are counted by type."""

from __future__ import annotations

from functools import lru_cache

from everturn.sources.claude_code.events import ClaudeRecord, plain

#: Records about the session, not of it.
KNOWN = frozenset(
    "file-history-snapshot file-history-delta mode permission-mode last-prompt ai-title custom-title pr-link "
    "bridge-session agent-name frame-link queue-operation".split()
)
PROGRESS = frozenset(
    "bash_progress hook_progress agent_progress mcp_progress waiting_for_task query_update search_results_received".split()
)
_SYSTEM = frozenset(
    "stop_hook_summary turn_duration away_summary compact_boundary microcompact_boundary api_error local_command "
    "bridge_status informational model_refusal_fallback".split()
)
_ATTACHMENTS = frozenset(
    "task_reminder hook_success hook_non_blocking_error hook_additional_context deferred_tools_delta skill_listing "
    "nested_memory hook_system_message command_permissions edited_text_file mcp_instructions_delta queued_command "
    "total_tokens_reminder agent_listing_delta auto_mode file diagnostics plan_mode_exit date_change "
    "compact_file_reference plan_mode plan_mode_reentry todo_reminder async_hook_response invoked_skills hook_cancelled "
    "auto_mode_exit directory ultra_effort_enter hook_blocking_error".split()
)
OPERATIONS = frozenset(("enqueue", "dequeue", "remove", "popAll"))
_PLAIN_TYPES = (KNOWN - {"queue-operation"}) | {"user", "assistant", "summary"}
_SUBTYPES = {
    "system": _SYSTEM,
    "attachment": _ATTACHMENTS,
    "progress": PROGRESS,
    "queue-operation": OPERATIONS,
}


def type_text(event: ClaudeRecord) -> tuple[str, bool]:
    """The type of a record, with its subtype where it has one, fit to be counted; and whether we know it."""
    kind = event.type
    if kind in _SUBTYPES:
        return _name_type(kind, _subtype(event))
    return _name_type(kind or "", "")


def attachment_kind(event: ClaudeRecord) -> str:
    """The type of an attachment."""
    kind = event.attachment.get("type") if isinstance(event.attachment, dict) else None
    return kind if isinstance(kind, str) else ""


def _subtype(event: ClaudeRecord) -> str:
    if event.type == "system":
        return event.subtype or ""
    if event.type == "progress":
        return (event.data.type or "") if event.data else ""
    return attachment_kind(event) if event.type == "attachment" else event.operation or ""


@lru_cache(maxsize=1024)
def _name_type(kind: str, subtype: str) -> tuple[str, bool]:
    known = subtype in _SUBTYPES[kind] if kind in _SUBTYPES else kind in _PLAIN_TYPES
    return plain(f"{kind}/{subtype}" if subtype else kind), known
