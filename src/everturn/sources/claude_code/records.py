"""The records of a transcript as structs: only the fields that are used, decoded in one pass.

`decode` is fast and strict. A record whose fields have other types than expected goes through `revive`, which takes every
field that fits and leaves out the rest: any JSON object comes out as an `ClaudeRecord`.

The types of records this version knows, and how records are counted by type.

Times as they stand in records: nearly always `2026-01-31T12:34:56.789Z`, sometimes anything else.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, ValidationError

from everturn.sources.toolkit.values import strings

#: Stands for a field that is not there; fields of type Raw are not decoded, only known to be there.
NOTHING = Raw()


class CacheWrites(Struct, gc=False):
    """`message.usage.cache_creation`: how long what was written stays."""

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
    """`toolUseResult`, of all tools together."""

    agent_id: str | None = None
    type: str | None = None
    file_path: str | None = None
    notebook_path: str | None = msgspec.field(default=None, name="notebook_path")
    file: FileRef | None = None
    structured_patch: Raw = NOTHING
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

#: What nearly every record has, and what says nothing to a reader: not part of the text of a record.
_ENVELOPE = frozenset(
    "type subtype uuid parentUuid logicalParentUuid sessionId session_id timestamp cwd gitBranch version isSidechain isMeta "
    "userType slug entrypoint level toolUseID parentToolUseID requestId teamName agentName agentId sessionKind "
    "leafUuid messageId promptId".split()
)

_PLAIN = re.compile(r"[A-Za-z0-9_./-]{1,64}")
_MOST = 1 << 53


def revive(found: dict[str, Any]) -> ClaudeRecord:
    """The event in a decoded object of any shape."""
    event = _fit(ClaudeRecord, found)
    event.loose = found
    return event


def nested_record(progress: ClaudeProgress) -> ClaudeRecord | None:
    """The record of a subagent that a progress record carries."""
    try:
        return decode(progress.message)
    except ValidationError:
        found = msgspec.json.decode(progress.message)
        return revive(found) if isinstance(found, dict) else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def body(event: ClaudeRecord) -> ClaudeBody:
    """The message of an event. It may be a JSON string; a string that is no JSON is what was said."""
    message = event.message
    if isinstance(message, ClaudeBody):
        return message
    if message is None:
        return ClaudeBody()
    try:
        return _decode_body(message)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return _loose_body(message)


def all_fields(event: ClaudeRecord, raw: bytes | memoryview) -> dict[str, Any]:
    """All fields of an event."""
    if event.loose is not None:
        return event.loose
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def own_words(record: dict[str, Any]) -> str:
    """The strings of a record without its envelope."""
    return "\n".join(strings({key: item for key, item in record.items() if key not in _ENVELOPE}, "headers"))


def plain(text: str) -> str:
    """A type or a version fit to be counted: never a piece of content."""
    return text if _PLAIN.fullmatch(text) else "?"


def word(value: Any) -> str:
    """A string as it may be kept in any database: without NUL."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else ""


def count(value: int | float | None) -> int | None:
    """A number as it may be kept in any database; None when it is none."""
    return int(value) if value is not None and 0 <= value < _MOST else None


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
    return msgspec.convert(value, kind)


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


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_USUAL_LENGTH = 24

#: Numbers above this are milliseconds, not seconds: as seconds it would be the year 5138.
_SECONDS_END = 100_000_000_000
_MILLISECONDS_END = 253_402_300_800_000  # the year 10000


def milliseconds(at: str | int | float | None) -> tuple[int | None, str]:
    """Milliseconds UTC and the precision; (None, "") when it is no time."""
    if isinstance(at, str):
        if len(at) == _USUAL_LENGTH and at[19] == "." and at[23] == "Z":
            minute, rest = _minute(at[:17]), at[17:19] + at[20:23]
            if minute is not None and rest.isdecimal() and rest < "60":
                return minute + int(rest), "ms"
        return _parse_unusual(at)
    return (None, "") if at is None else _number(at)


@lru_cache(maxsize=4096)
def _minute(start: str) -> int | None:
    """Milliseconds at the start of a minute: records come in runs, so most have been asked for before."""
    try:
        moment = datetime.fromisoformat(f"{start}00+00:00")
    except ValueError:
        return None
    return (moment - _EPOCH) // _MILLISECOND


def _parse_unusual(at: str) -> tuple[int | None, str]:
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None, ""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    precision = "day" if len(at) <= len("2026-01-31") else "ms" if "." in at or "," in at else "s"
    return (moment - _EPOCH) // _MILLISECOND, precision


def _number(at: int | float) -> tuple[int | None, str]:
    if not -_MILLISECONDS_END < at < _MILLISECONDS_END:  # also what is not a number
        return None, ""
    return (int(at * 1000), "s") if abs(at) < _SECONDS_END else (int(at), "ms")
