"""The records of a transcript as structs, the record types this version knows, and how records are counted by type.

The structs have only the fields that are used and are decoded in one pass. `decode` is fast and strict. A record whose
fields have unexpected types goes through `revive`, which keeps every field that fits: any JSON object becomes a
`ClaudeRecord`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, ValidationError

from everturn.model.conversation import prepared
from everturn.sources.contract import FileBackup
from everturn.sources.toolkit.values import plain, strings

#: An absent field of type Raw. Such fields are not decoded; only their presence matters.
NOTHING = Raw()


class CacheWrites(Struct, gc=False):
    """`message.usage.cache_creation`: cache writes by lifetime."""

    ephemeral_1h_input_tokens: int | None = 0


class ClaudeTokens(Struct, gc=False):
    """`message.usage`."""

    input_tokens: int | None = 0
    output_tokens: int | None = 0
    cache_read_input_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    cache_creation: CacheWrites | None = None


class ClaudeBody(Struct, gc=False):
    """`message`."""

    role: str | None = None
    content: Any = None
    id: str | None = None
    model: str | None = None
    usage: ClaudeTokens | None = None


class FileRef(Struct, gc=False):
    """`toolUseResult.file`."""

    file_path: str | None = msgspec.field(default=None, name="filePath")


class ClaudeToolResult(Struct, gc=False, rename="camel"):
    """`toolUseResult`: the fields of all tools."""

    agent_id: str | None = None
    type: str | None = None
    file_path: str | None = None
    notebook_path: str | None = msgspec.field(default=None, name="notebook_path")
    file: FileRef | None = None
    structured_patch: Raw = NOTHING
    interrupted: bool | None = None
    total_tokens: int | float | None = None
    total_tool_use_count: int | float | None = None
    duration_ms: int | float | None = None
    total_duration_ms: int | float | None = None
    duration_seconds: int | float | None = None
    exit_code: int | None = None
    answers: Any = None


class ClaudeProgress(Struct, gc=False, rename="camel"):
    """`data` of a progress record."""

    type: str | None = None
    agent_id: str | None = None
    message: Raw = NOTHING


class ClaudeRecord(Struct, gc=False, rename="camel"):
    """One record. A field that is absent, null or of an odd type is None."""

    type: str | None = None
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    session_id: str | None = None
    timestamp: str | int | float | None = None
    cwd: str | None = None
    git_branch: str | None = None
    version: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    agent_id: str | None = None
    team_name: str | None = None
    agent_name: str | None = None
    slug: str | None = None
    source_tool_assistant_uuid: str | None = msgspec.field(default=None, name="sourceToolAssistantUUID")
    message: ClaudeBody | str | None = None
    tool_use_result: ClaudeToolResult | str | list[Raw] | None = None
    data: ClaudeProgress | None = None
    attachment: Any = None
    content: Any = None
    operation: str | None = None
    summary: str | None = None
    leaf_uuid: str | None = None
    ai_title: str | None = None
    custom_title: str | None = None
    prompt_source: str | None = None
    origin: Any = None
    duration_ms: int | float | None = None
    parent_tool_use_id: str | None = msgspec.field(default=None, name="parentToolUseID")
    loose: dict[str, Any] | None = msgspec.field(default=None, name="(loose)")  # the whole record, when revived


decode = msgspec.json.Decoder(ClaudeRecord).decode

_decode_body = msgspec.json.Decoder(ClaudeBody).decode

_S = TypeVar("_S", bound=Struct)

_NESTED: dict[tuple[type[Struct], str], type[Struct]] = {
    (ClaudeRecord, "message"): ClaudeBody,
    (ClaudeRecord, "tool_use_result"): ClaudeToolResult,
    (ClaudeRecord, "data"): ClaudeProgress,
    (ClaudeBody, "usage"): ClaudeTokens,
    (ClaudeTokens, "cache_creation"): CacheWrites,
    (ClaudeToolResult, "file"): FileRef,
}

#: Fields of nearly every record that mean nothing to a reader: not part of the text of a record.
_ENVELOPE = frozenset(
    "type subtype uuid parentUuid logicalParentUuid sessionId session_id timestamp cwd gitBranch version isSidechain isMeta "
    "userType slug entrypoint level toolUseID parentToolUseID requestId teamName agentName agentId sessionKind "
    "leafUuid messageId promptId".split()
)


def revive(value: dict[str, Any]) -> ClaudeRecord:
    """Convert a decoded object of any shape to a record."""
    record = _fit(ClaudeRecord, value)
    record.loose = value
    return record


def nested_record(progress: ClaudeProgress) -> ClaudeRecord | None:
    """Return the record of a subagent inside a progress record; None when there is none."""
    try:
        return decode(progress.message)
    except ValidationError:
        found = msgspec.json.decode(progress.message)
        return revive(found) if isinstance(found, dict) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def body(record: ClaudeRecord) -> ClaudeBody:
    """Return the message of a record. It may be a JSON string; a string that is no JSON is the content itself."""
    message = record.message
    if isinstance(message, ClaudeBody):
        return message
    if message is None:
        return ClaudeBody()
    try:
        return _decode_body(message)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _loose_body(message)


def all_fields(record: ClaudeRecord, raw: bytes | memoryview) -> dict[str, Any]:
    """Return all fields of a record, decoded from its bytes."""
    if record.loose is not None:
        return record.loose
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def text_without_envelope(fields: dict[str, Any]) -> str:
    """Return the strings of a record except those of its envelope."""
    return "\n".join(strings({key: item for key, item in fields.items() if key not in _ENVELOPE}, "headers"))


def _loose_body(message: str) -> ClaudeBody:
    try:
        found = msgspec.json.decode(message)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        found = message
    if not isinstance(found, dict):
        return ClaudeBody(content=message)
    return _fit(ClaudeBody, found)


def _fit(cls: type[_S], found: dict[str, Any]) -> _S:
    values = {}
    for field in msgspec.structs.fields(cls):
        if field.encode_name in found and field.name != "loose":
            value = found[field.encode_name]
            nested = _NESTED.get((cls, field.name))
            try:
                values[field.name] = _convert_field(value, field.type, nested)
            except (ValidationError, ValueError, OverflowError, RecursionError, TypeError):
                continue
    return cls(**values)


def _convert_field(value: Any, kind: Any, nested: type[Struct] | None) -> Any:
    if nested is not None and isinstance(value, dict):
        return _fit(nested, value)
    if kind is Raw:
        return Raw(msgspec.json.encode(value))
    return msgspec.convert(value, prepared(kind))


#: The beginning of a line of the prompt history.
PROMPTS = b'{"display":'

#: Records about the session that hold no message.
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
_SUBTYPES = {"system": _SYSTEM, "attachment": _ATTACHMENTS, "progress": PROGRESS, "queue-operation": OPERATIONS}


def type_text(record: ClaudeRecord) -> tuple[str, bool]:
    """Return the type of a record with its subtype, if any, fit to be counted; and whether it is known."""
    kind = record.type
    if kind in _SUBTYPES:
        return _name_type(kind, _subtype(record))
    return _name_type(kind or "", "")


def attachment_kind(record: ClaudeRecord) -> str:
    """Return the type of an attachment."""
    kind = record.attachment.get("type") if isinstance(record.attachment, dict) else None
    return kind if isinstance(kind, str) else ""


def _subtype(record: ClaudeRecord) -> str:
    if record.type == "system":
        return record.subtype or ""
    if record.type == "progress":
        return (record.data.type or "") if record.data else ""
    return attachment_kind(record) if record.type == "attachment" else record.operation or ""


@lru_cache(maxsize=1024)
def _name_type(kind: str, subtype: str) -> tuple[str, bool]:
    known = subtype in _SUBTYPES[kind] if kind in _SUBTYPES else kind in _PLAIN_TYPES
    return plain(f"{kind}/{subtype}" if subtype else kind), known


class _EditedFile(Struct, gc=False, rename="camel"):
    type: str | None = None
    original_file: str | None = None


class _EditNote(Struct, gc=False, rename="camel"):
    tool_use_result: _EditedFile | None = None


def original(raw: bytes) -> str | None:
    try:
        noted = msgspec.json.decode(raw, type=prepared(_EditNote)).tool_use_result
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if noted is None:
        return None
    return "" if noted.type == "create" and noted.original_file is None else noted.original_file


class _Backup(Struct, gc=False, rename="camel"):
    backup_file_name: str | None = None


class _FileSnapshot(Struct, gc=False, rename="camel"):
    message_id: str = ""
    tracked_file_backups: dict[str, _Backup] = {}


class _FileHistory(Struct, gc=False, rename="camel"):
    type: str = ""
    snapshot: _FileSnapshot | None = None
    snapshot_message_id: str = ""
    tracking_path: str = ""
    backup: _Backup | None = None


_MARKS = (b'"trackedFileBackups"', b'"trackingPath"')


def file_backups(raw: bytes) -> list[FileBackup]:
    """See `Source.backups`. A snapshot names all copies of a prompt, a delta one more."""
    if not any(mark in raw for mark in _MARKS):
        return []
    try:
        record = msgspec.json.decode(raw, type=prepared(_FileHistory))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    if record.type == "file-history-snapshot" and record.snapshot is not None:
        named, message = record.snapshot.tracked_file_backups, record.snapshot.message_id
    elif record.type == "file-history-delta" and record.backup is not None:
        named, message = {record.tracking_path: record.backup}, record.snapshot_message_id
    else:
        return []
    return [FileBackup(message, path, copy.backup_file_name or "") for path, copy in named.items() if path]
