"""The records of a rollout, the same for both eras after `open_record`, and the state of a reader.

Until August 2025 a rollout began with `{id, timestamp, instructions}` and held items as they are; since then every line is
`{timestamp, type, payload}`. Items (`response_item`) are the messages. Events (`event_msg`) mostly repeat them: only a few
hold something of their own.

The reader state makes reading in any pieces give the same as reading at once. It is bounded: everything that grows with the
file forgets its oldest entries.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct

from everturn.model.conversation import TokenUsage, fingerprint
from everturn.sources.toolkit.line_reader import Rec, RecordPlace, mapping
from everturn.sources.toolkit.values import count, plain, remember, strings, word

HEADER, STATE = "(header)", "(state)"
ITEM, EVENT = "response_item", "event_msg"

ROLES = frozenset(("user", "assistant", "developer", "system"))

#: Items of the model, and those the client adds.
CALLS = frozenset(("function_call", "custom_tool_call", "local_shell_call", "tool_search_call"))
DONE_BY_PROVIDER = frozenset(("web_search_call", "image_generation_call"))
OUTPUTS = frozenset(("function_call_output", "custom_tool_call_output", "tool_search_output"))
_SILENT_ITEMS = frozenset(
    "ghost_snapshot compaction compaction_summary context_compaction compaction_trigger additional_tools".split()
)
_ITEMS = frozenset(("message", "reasoning", "agent_message")) | CALLS | DONE_BY_PROVIDER | OUTPUTS | _SILENT_ITEMS

#: Events that repeat an item, and those whose content is all in items or in other events.
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
#: Events whose text is nowhere else.
NOTICES = frozenset(
    "error stream_error warning guardian_warning guardian_assessment model_reroute deprecation_notice background_event "
    "thread_rolled_back entered_review_mode exited_review_mode thread_goal_updated item_completed".split()
)
#: How the id of a call begins that a script of the tool `exec` made.
_OF_SCRIPT = "exec-"
ENDS = frozenset(("task_complete", "turn_complete"))
#: The older event that equals `item_completed`, since 2026 the event for everything, by the type of its item.
#: A plan, and an item of unknown type, has text of its own.
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
    """A record of either era without its wrapping."""

    outer: str  # session_meta response_item event_msg turn_context compacted … or one of ours
    kind: str  # type of the item or event
    item: Rec  # what it holds
    at: Any  # time as written
    name: str  # type to be counted
    is_known: bool


def open_record(record: Rec) -> CodexRecord:
    """Return a record without its wrapping."""
    outer, payload = record.get("type"), record.get("payload")
    if isinstance(payload, dict) and isinstance(outer, str):
        kind = word(payload.get("type")) if outer in (ITEM, EVENT) else ""
        name, known = _record_name(outer, kind)
        if kind == "item_completed":
            kind, payload = _unwrap_completed(payload)
        is_known = known and _has_known_role(kind, payload)
        return CodexRecord(outer, kind, payload, record.get("timestamp"), name, is_known)
    if isinstance(outer, str):
        known = outer in _ITEMS
        is_known = known and _has_known_role(outer, record)
        return CodexRecord(ITEM if known else "", outer, record, record.get("timestamp"), plain(outer), is_known)
    if "record_type" in record and outer is None:
        return CodexRecord(STATE, "", record, None, STATE, True)
    if _is_header(record):
        return CodexRecord(HEADER, "", record, record.get("timestamp"), HEADER, True)
    return CodexRecord("", "", record, record.get("timestamp"), "?", False)


def is_silent(record: CodexRecord) -> bool:
    """Return whether a known record is about the session and holds no message."""
    if record.outer == ITEM:
        return record.kind in _SILENT_ITEMS
    if record.outer == EVENT:
        return record.kind in _SILENT_EVENTS and not is_patch_of_script(record)
    return record.outer in ("session_meta", "turn_context", "world_state", "token_usage_record", HEADER, STATE)


def is_patch_of_script(record: CodexRecord) -> bool:
    """Whether an event reports a patch that a script of the tool `exec` applied: no item has that call."""
    if record.kind != "patch_apply_end" or not isinstance(record.item.get("changes"), dict):
        return False
    return word(record.item.get("call_id")).startswith(_OF_SCRIPT)


def _has_known_role(kind: str, item: Rec) -> bool:
    return kind != "message" or word(item.get("role")) in ROLES


def _unwrap_completed(payload: Rec) -> tuple[str, Rec]:
    """Return the older event with the same meaning, with its text where that one has it."""
    item = payload.get("item")
    kind = _COMPLETED.get(word(item.get("type")), "") if isinstance(item, dict) else ""
    if not kind or not isinstance(item, dict):
        return "item_completed", payload
    texts = [item.get("content"), item.get("summary_text"), item.get("raw_content")]
    return kind, {"type": kind, "message": "".join(strings(texts, "type", "text_elements"))}


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


_MOST_SAID = 32
_MOST_UNHEARD = 8
_MOST_SPAWNED = 200
_LONGEST_UNHEARD = 8000

#: Shorter ids are not random enough to identify an item across files.
_SURE_ID = 20


class CodexUnheard(Struct, array_like=True):
    """An event that repeats an item which has not come yet."""

    start: int
    size: int
    mark: int
    kind: str
    text: str
    at: str


class CodexReaderState(Struct, array_like=True):
    open_line: bool = False
    met: bool = False  # the session's header was read
    kind: str = ""
    parent: str = ""
    client: str = ""
    model: str = ""
    placed: bool = False  # the working folder is known
    linked: bool = False  # to its parent session
    task: bool = False  # a turn is running
    prompted: bool = False  # … and has its prompt
    response: int = 0
    answering: bool = False
    counted: bool = False  # the tokens of this response are known
    total: list[int] = []  # tokens so far: input, cached input, output
    chain: str = ""  # the session that wrote these items: in a fork, first the original one
    anchor: int = 0
    since: int = 0
    said: list[int] = []  # marks of the latest texts in items
    unheard: list[CodexUnheard] = []
    spawned: dict[str, bool] = {}  # calls that start an agent
    began: int | None = None  # time of the header, for items of older clients, which have none

    # --- responses ---
    def open_response(self) -> str:
        """Return the name of the model response an item belongs to: consecutive items of the model are one."""
        if not self.answering:
            self.answering, self.counted = True, False
            self.response += 1
        return f"#{self.response}"

    def count_response(self) -> str:
        """Return the response of a token count. Older clients write it before the items, newer ones after."""
        if not self.response or self.counted:
            self.answering = False
            self.open_response()
        self.counted = True
        return f"#{self.response}"

    def response_tokens(self, info: Rec) -> TokenUsage | None:
        """Return the tokens of the latest response from counters that only grow; None if nothing is new."""
        total, last = _tokens(info.get("total_token_usage")), _tokens(info.get("last_token_usage"))
        if not any(total):
            return None
        before, self.total = self.total, total
        spent = [new - old for new, old in zip(total, before, strict=False)]
        if len(before) != len(total) or min(spent) < 0:  # the first of a fork, or a restarted counter
            spent = last if any(last) else total
        given, cached, output = spent
        return TokenUsage(max(given - cached, 0), output, cached) if any(spent) else None

    def close_response(self) -> None:
        """End a turn: later token counts belong to the next one."""
        self.answering, self.counted = False, True

    # --- copies in forks ---
    def follow_session(self, native_id: str) -> None:
        """Note that the items from here on were first written by this session."""
        if native_id and native_id != self.chain:
            self.chain, self.anchor, self.since = native_id, fingerprint(native_id, ""), 0

    def mark_item(self, item: Rec, text: str) -> int:
        """Return a fingerprint that copies of an item share.

        Forked files copy items with new times and mostly without ids, so an item is known by a long id of its own, or by
        its text and its distance from the last one that has an id.
        """
        name = item.get("call_id") or item.get("id") or item.get("encrypted_content")
        if isinstance(name, str) and len(name) >= _SURE_ID:
            self.anchor, self.since = fingerprint(name, word(item.get("type"))), 0
            return self.anchor
        self.since += 1
        return fingerprint(f"{self.anchor}/{self.since}", text)

    def mark_event(self, text: str) -> int:
        """Return such a fingerprint for a record that is no item."""
        return fingerprint(f"{self.anchor}/{self.since}/", text)

    # --- events that repeat items ---
    def note_texts(self, texts: list[str]) -> None:
        """Note the texts of an item; events that repeat them need not wait any longer."""
        marks = [fingerprint("said", text.strip()) for text in [*texts, "".join(texts)]]
        self.said = [*self.said, *marks][-_MOST_SAID:]
        if self.unheard:
            self.unheard = [one for one in self.unheard if one.mark not in marks]

    def is_new_letter(self, text: str, is_item: bool) -> bool:
        """Return False for a letter that was already read in its other form: it may be written as item and as event."""
        own, other = (fingerprint(form, text) for form in (("item", "letter") if is_item else ("letter", "item")))
        if other in self.said:
            self.said.remove(other)
            return False
        self.said = [*self.said, own][-_MOST_SAID:]
        return True

    def note_mirror(self, kind: str, text: str, at: object, place: RecordPlace) -> None:
        """Note an event that repeats an item, unless the item has come."""
        mark = fingerprint("said", text.strip())
        if text.strip() and mark not in self.said and len(text) <= _LONGEST_UNHEARD:
            self.unheard = [*self.unheard, CodexUnheard(*place, mark, kind, text, word(at))][-_MOST_UNHEARD:]

    def take_unheard(self) -> list[CodexUnheard]:
        """Return the events whose items did not come, and forget them."""
        found, self.unheard = self.unheard, []
        return found

    def note_spawn(self, call_id: str) -> None:
        remember(self.spawned, call_id, True, _MOST_SPAWNED)


def _tokens(counted: object) -> list[int]:
    found = mapping(counted)
    return [count(found.get(key)) or 0 for key in ("input_tokens", "cached_input_tokens", "output_tokens")]
