"""Reads the log that the terminal program writes on request (`CODEX_TUI_RECORD_SESSION`): every event on its screen.

The session usually has a rollout as well; the log is read because it may be all that is left. What the human typed is there
key by key, so a prompt is the range of records from its first key to its last, and its fidelity is `rendered`: nobody knows
what the editor made of the keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, CallStart, Link, Message, fingerprint
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    SessionTally,
    add,
    listing,
    mapping,
    records,
)
from everturn.sources.toolkit.values import count, exit_code, milliseconds, plain, strings, text_blocks, word

_KEY = re.compile(
    r"KeyEvent \{ code: (?:Char\('(\\?.|\\u\{[0-9a-f]{1,6}\})'\)|(\w+)).{0,80}?modifiers: KeyModifiers\((\w+)\)"
)
_CONTROL = frozenset(("0x2", "CONTROL", "0x4", "ALT"))
_KINDS = frozenset(
    ("app_event", "key_event", "insert_history", "log_line", "codex_event", "op", "session_start", "session_end")
)
_PROMPTS = frozenset(("user_input", "user_turn"))
_LONGEST = 100_000

#: Events that become messages, and those that do not: fragments of later events, and marks.
_MESSAGES = frozenset(
    "agent_message agent_reasoning agent_reasoning_raw_content exec_command_begin exec_command_end error turn_aborted".split()
)
_SILENT = frozenset(
    "session_configured task_started task_complete turn_started turn_complete token_count shutdown_complete "
    "agent_message_delta agent_reasoning_delta agent_reasoning_raw_content_delta agent_reasoning_section_break "
    "exec_command_output_delta turn_diff plan_update background_event patch_apply_begin patch_apply_end user_message "
    "mcp_tool_call_begin mcp_tool_call_end web_search_begin web_search_end stream_error get_history_entry_response "
    "mcp_list_tools_response list_custom_prompts_response exec_approval_request apply_patch_approval_request".split()
)


class _ScreenLogReaderState(Struct, array_like=True):
    open_line: bool = False
    model: str = ""
    response: int = 0
    answering: bool = False
    keys: list[str] = []  # typed so far
    start: int = 0  # of the first key
    at: str = ""
    sent: list[str] = []  # keys of a prompt that was sent: it becomes a message when the turn starts
    sent_start: int = 0
    sent_size: int = 0
    sent_at: str = ""


class CodexScreenLogReader(LineReader[_ScreenLogReaderState]):
    kind = _ScreenLogReaderState

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        kind, payload_type = word(record.get("kind")), _payload_type(record)
        name = f"{kind}/{payload_type}" if payload_type else kind
        if kind == "key_event":
            self._note_key(record, place)
        elif kind == "session_start":
            self._state.model = word(record.get("model"))
            self._session().learn(workspace=word(record.get("cwd")))
            self._session().links.append(Link("about", self._name.rpartition("/")[0]))
        elif payload_type in ("task_started", "turn_started"):
            self._add_prompt()
        if not _is_known(kind, payload_type):
            self._add(_unknown(record, place))
            return plain(name), "unknown", ""
        if (message := _build_message(record, place)) is not None:
            self._add(self._assign_response(message))
        return plain(name), "message" if message is not None else "known", ""

    def _session(self) -> SessionTally:
        return self._gathering.session(self._name)

    def _add(self, message: Message) -> None:
        text = "\0".join(block.text for block in message.blocks)
        mark = fingerprint(f"{self._name}/{message.start}", text)
        add(self._gathering, self._session(), replace(message, fingerprint=mark))

    def _assign_response(self, message: Message) -> Message:
        state = self._state
        if message.origin != "model":
            state.answering = False
            if message.origin == "human":
                state.sent, state.keys = [], []
            return message
        state.response += not state.answering
        state.answering = True
        return replace(message, provider_id=f"#{state.response}", model=state.model)

    # --- keys ---
    def _note_key(self, record: Rec, place: RecordPlace) -> None:
        state = self._state
        key = _pressed_key(record)
        if not state.keys:
            state.start, state.at = place.start, word(record.get("ts"))
        if key == "Enter" and state.keys:
            state.sent, state.keys = state.keys, []
            state.sent_start, state.sent_at = state.start, state.at
            state.sent_size = place.start + place.size - state.start
        elif key:
            _apply_key(state.keys, key)

    def _add_prompt(self) -> None:
        state = self._state
        if state.sent:
            message = _prompt(state.sent, state.sent_at, RecordPlace(state.sent_start, state.sent_size))
            state.sent = []
            self._add(self._assign_response(message))


def view_log(raw: bytes, record: Rec | None) -> Message | None:
    """Return the message of a record, or of a range of records in which something was typed."""
    place = RecordPlace(0, len(raw))
    if record is not None and record.get("kind") != "key_event":
        known = _is_known(word(record.get("kind")), _payload_type(record))
        return _build_message(record, place) if known else _unknown(record, place)
    keys: list[str] = []
    typed = records(raw)
    for one in typed[:-1]:
        if one.get("kind") == "key_event":
            _apply_key(keys, _pressed_key(one))
    return _prompt(keys, word(typed[0].get("ts")), place) if keys else None


def _payload_type(record: Rec) -> str:
    """Return the type of the event or of the request in a record."""
    payload = mapping(record.get("payload"))
    return word(payload.get("type")) or word(mapping(payload.get("msg")).get("type"))


def _is_known(kind: str, payload_type: str) -> bool:
    return kind in _KINDS and (kind != "codex_event" or payload_type in _MESSAGES or payload_type in _SILENT)


# --- messages ---
def _build_message(record: Rec, place: RecordPlace) -> Message | None:
    payload, payload_type = mapping(record.get("payload")), _payload_type(record)
    if record.get("kind") == "op" and payload_type in _PROMPTS:
        text = "\n".join(strings(payload.get("items"), "type"))
        return _message(record, place, "user", "human", text_blocks(text, "prompt"))
    if record.get("kind") != "codex_event" or payload_type not in _MESSAGES:
        return None
    event = mapping(payload.get("msg"))
    if payload_type == "agent_message":
        return _message(record, place, "assistant", "model", text_blocks(word(event.get("message")), "answer"))
    if payload_type in ("agent_reasoning", "agent_reasoning_raw_content"):
        thought = Block("thinking", word(event.get("text")), "thinking")
        return _message(record, place, "assistant", "model", (thought,))
    if payload_type == "exec_command_begin":
        return _message(record, place, "assistant", "model", (_begin_block(event),))
    if payload_type == "exec_command_end":
        return _message(record, place, "tool", "tool", (_end_block(event),), "result")
    kind = "interrupt" if payload_type == "turn_aborted" else "notice"
    return _message(record, place, "system", "system", text_blocks("\n".join(strings(event, "type")), "meta"), kind)


def _begin_block(event: Rec) -> Block:
    words = [word(one) for one in listing(event.get("command"))]
    command = words[2] if len(words) == 3 and words[1] in ("-c", "-lc") else " ".join(words)
    start = CallStart(word(event.get("call_id")), "shell", "shell", "", command, {"command": words})
    return Block("call", "\n".join(["shell", *words]), "tool_input", call=start, data=event)


def _end_block(event: Rec) -> Block:
    text = "\n".join(filter(None, (word(event.get("stdout")), word(event.get("stderr")))))
    status = exit_code(event.get("exit_code"))
    lasted = mapping(event.get("duration"))
    seconds, rest = count(lasted.get("secs")), count(lasted.get("nanos"))
    took = None if seconds is None else seconds * 1000 + (rest or 0) // 1_000_000
    end = CallEnd(word(event.get("call_id")), bool(status), "exit_status" if status else "", status, took)
    return Block("result", text, "tool_output", result=end, data=event)


def _unknown(record: Rec, place: RecordPlace) -> Message:
    text = "\n".join(strings(record, "ts", "dir", "kind", "type", "id"))
    blocks = (Block("unknown", text, "meta"),) if text else ()
    return _message(record, place, "system", "system", blocks, "unknown")


def _prompt(keys: Iterable[str], at: str, place: RecordPlace) -> Message:
    blocks = text_blocks("".join(keys), "prompt")
    return replace(_message({"ts": at}, place, "user", "human", blocks), fidelity="rendered")


def _message(
    record: Rec, place: RecordPlace, role: str, origin: str, blocks: tuple[Block, ...], kind: str = "text"
) -> Message:
    at, precision = milliseconds(record.get("ts"))
    return Message(
        role, origin, kind, at, precision, blocks=blocks, starts_turn=origin == "human", start=place.start,
        size=place.size,
    )  # fmt: skip


# --- keys ---
def _pressed_key(record: Rec) -> str:
    """Return the typed character or the name of the key; "" for a key that types nothing."""
    found = _KEY.match(word(record.get("event")))
    if found is None or found[3] in _CONTROL or "kind: Release" in word(record.get("event")):
        return ""
    return _character(found[1]) if found[1] else found[2]


def _character(text: str) -> str:
    if text.startswith("\\u{"):
        code = int(text[3:-1], 16)
        return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else "\ufffd"
    return {"\\n": "\n", "\\t": "\t", "\\r": "\n"}.get(text, text[-1])


def _apply_key(keys: list[str], key: str) -> None:
    if key == "Backspace":
        del keys[-1:]
    elif len(key) == 1 and len(keys) < _LONGEST:
        keys.append(key)
