"""Finds logs, recognises them by their content, and reads them event by event.

    ~/.kimi/sessions/<hash of the working folder>/<session>/wire.jsonl                        Kimi CLI
    ~/.kimi/sessions/<hash of the working folder>/<session>/subagents/<agent>/wire.jsonl      its subagents
    ~/.kimi-code/sessions/<working folder>/<session>/agents/<agent>/wire.jsonl                Kimi Code: `main`, and subagents

KIMI_SHARE_DIR and KIMI_CODE_HOME name other folders. A log does not name its session: the folder does. `context.jsonl`
repeats the log as the model saw it and is not read. Folders behind symbolic links are not entered.

Builds the message of one event without the events around it, for the reader and for `view`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import md5
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, Link, Message, fingerprint
from everturn.sources.contract import SourceCandidate, read_beginning
from everturn.sources.toolkit.file_search import find_in_folders
from everturn.sources.toolkit.json_document import read_object
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
    view_placed,
)
from everturn.sources.toolkit.values import (
    call_block,
    count,
    counted_usage,
    error_class,
    message_digest,
    milliseconds,
    plain,
    strings,
    text_blocks,
    unknown_block,
    unknown_message,
    word,
)

_LOG = "wire.jsonl"
_FOLDERS = ("sessions", "imported_sessions")


# --- files ---
def find(root: Path) -> Iterator[SourceCandidate]:
    """Yield the logs below a root: the client's folder, or any folder with logs."""
    return find_in_folders(root, _FOLDERS, _pick_by_content)


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if not any(map(_is_own, records(head))):
        return None
    if path.name != _LOG or len(path.parts) < 2:
        return SourceCandidate(path, "main", path.stem)
    folder, above = path.parent, path.parent.parent
    if above.name in ("subagents", "agents") and above.parent.name:
        session = above.parent.name
        if above.name == "agents" and folder.name == "main":
            return SourceCandidate(path, "main", session)
        return SourceCandidate(path, "subagent", f"{session}/{folder.name}", session)
    return SourceCandidate(path, "main", folder.name or path.stem)


def folder_of(path: Path) -> str:
    """Return the working folder of a log: Kimi Code notes it in the session's state, Kimi CLI in a list for all sessions."""
    for folder in path.parents[:3]:
        if where := word(read_object(folder / "state.json").get("workDir")):
            return where
    for folder in path.parents[1:5]:
        for known in listing(read_object(folder.parent.parent / "kimi.json").get("work_dirs")):
            where = word(mapping(known).get("path"))
            if where and folder.name.endswith(md5(where.encode(), usedforsecurity=False).hexdigest()):
                return where
    return ""


def _is_own(record: Rec) -> bool:
    if record.get("type") == "metadata":
        return bool(word(record.get("protocol_version")))
    kind, payload = event_of(record)
    if payload is record:
        return kind.startswith(("context.", "turn.")) and "time" in record and is_known(kind)
    return bool(kind) and is_known(kind)


def _pick_by_content(_: Path, entry: os.DirEntry[str]) -> SourceCandidate | None:
    is_file = entry.name.endswith(".jsonl") and (not entry.is_symlink() or entry.is_file())
    return sniff(Path(entry.path), read_beginning(entry.path)) if is_file else None


# --- the reader ---
class KimiReaderState(Struct, array_like=True):
    """The state from which a later reader continues."""

    open_line: bool = False
    version: str = ""  # of the protocol
    step: str = ""  # the response under way
    steered: bool = False  # the next prompt was typed while the agent worked
    linked: bool = False
    children: dict[str, str] = {}  # subagent → its response under way, if only this log has its events


class KimiReader(LineReader[KimiReaderState]):
    """Reads the log of one session, or of one subagent."""

    kind = KimiReaderState

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        kind, payload = event_of(record)
        session = self._open_session()
        if kind == "metadata":
            self._state.version = word(record.get("protocol_version"))
        if kind == SUBAGENT:
            inner, _ = nested_event(payload)
            disposition = self._take_nested(session, record, payload, place)
            return f"{kind}/{plain(inner)}", disposition, plain(self._state.version)
        self._follow(kind, payload, place)
        message = build(record, place)
        if message is not None:
            add(self._gathering, session, self._in_context(session, kind, payload, message))
        disposition = "unknown" if not is_known(kind) else "known" if message is None else "message"
        return plain(kind), disposition, plain(self._state.version)

    def _follow(self, kind: str, payload: Rec, place: RecordPlace) -> None:
        """Note which response is under way."""
        if kind in ("StepBegin", "step.begin"):
            self._state.step = word(payload.get("uuid")) or f"@{place.start}"
        elif kind in ("turn.steer", "turn.prompt"):
            self._state.steered = kind == "turn.steer"

    def _in_context(self, session: SessionTally, kind: str, payload: Rec, message: Message) -> Message:
        state = self._state
        is_subagent = self._candidate.kind == "subagent"
        if message.starts_turn and state.steered:
            message = replace(message, kind="queued", starts_turn=False)
            state.steered = False
        if message.starts_turn and is_subagent and not state.linked:
            state.linked = True
            task = "\n".join(block.text for block in message.blocks if block.field == "prompt")
            session.link_parent(self._candidate.parent, task)
        session.link_tasks(message)
        if message.origin == "human" and is_subagent:
            return replace(message, origin="agent")
        if message.origin != "model":
            return message
        is_apart = kind in ("BtwEnd", "context.append_message") or payload.get("usageScope") == "session"
        step = word(payload.get("stepUuid")) or state.step
        return replace(message, provider_id=step if step and not is_apart else f"@{message.start}")

    # --- events of subagents ---
    def _take_nested(self, session: SessionTally, record: Rec, payload: Rec, place: RecordPlace) -> str:
        """Take an event of a subagent. Only logs of old clients, which name no agent, are its only record."""
        call_id = word(payload.get("parent_tool_call_id")) or word(payload.get("task_tool_call_id"))
        agent, children = word(payload.get("agent_id")), self._state.children
        child = f"{self._candidate.parent or self._name}/{agent or call_id}"
        if (agent or call_id) not in children:
            children[agent or call_id] = ""
            session.links.append(Link("spawned", child, call_id))
            if not agent:
                part = self._gathering.session(child, "subagent", self._name)
                part.links.append(Link("subagent_of", self._name, call_id))
        if agent:
            return "known"
        kind, _ = nested_event(payload)
        if kind == "StepBegin":
            children[call_id] = f"@{place.start}"
        message = build(record, place)
        if message is not None:
            part = self._gathering.session(child, "subagent", self._name)
            origin = "agent" if message.origin == "human" else message.origin
            response = (children[call_id] or f"@{place.start}") if origin == "model" else ""
            add(self._gathering, part, replace(message, origin=origin, provider_id=response))
        return "unknown" if not is_known(kind) else "known" if message is None else "message"


# --- Builds the message of one event without the events around it, for the reader and for `view` ---
SUBAGENT = "SubagentEvent"
#: Events that hold no messages, or repeat what other events say.
SILENT = frozenset(
    "TurnEnd StepBegin CompactionBegin HookTriggered HookResolved HookRequest MCPLoadingBegin MCPLoadingEnd ApprovalRequest "
    "ApprovalRequestResolved ToolCallRequest QuestionRequest "
    "metadata forked turn.prompt turn.steer config.update profile.bind context.update_token_count step.begin step.end".split()
)
_SILENT_GROUPS = (
    "tools.", "permission.", "plan_mode.", "swarm_mode.", "goal.", "llm.", "mcp.", "cron.", "file_history.",
    "full_compaction.", "micro_compaction.",
)  # fmt: skip
_KINDS = {
    "StrReplaceFile": "edit", "SetTodoList": "plan", "TodoList": "plan", "ReadMediaFile": "read",
}  # fmt: skip
_EXITED = re.compile(r"exit code: (-?\d{1,9})\b")
_REJECTED = "rejected by the user"
_END = 400
#: Origin and kind of the messages of Kimi Code that have the role of the user.
_ORIGINS = {
    "user": ("human", "text"),
    "shell_command": ("human", "shell"),
    "compaction_summary": ("injected", "summary"),
    "task": ("injected", "notification"),
    "cron_job": ("injected", "notification"),
    "cron_missed": ("injected", "notification"),
}


def event_of(record: Rec) -> tuple[str, Rec]:
    """Return the type and the content of the event in a record of either client; the type is "" if there is none."""
    inner = mapping(record.get("message"))
    if "timestamp" in record and isinstance(inner.get("payload"), dict):
        return word(inner.get("type")), inner["payload"]
    kind = word(record.get("type"))
    if kind == "context.append_loop_event":
        event = mapping(record.get("event"))
        return word(event.get("type")), event
    return kind, record


def nested_event(payload: Rec) -> tuple[str, Rec]:
    """Return the event of a subagent that its parent has logged."""
    event = mapping(payload.get("event"))
    kind, inner = word(event.get("type")), mapping(event.get("payload"))
    return (kind, inner) if kind != SUBAGENT else ("", inner)


def is_known(kind: str) -> bool:
    """Return whether this version knows events of this type."""
    return kind in _BUILDERS or is_silent(kind) or kind == SUBAGENT


def is_silent(kind: str) -> bool:
    """Return whether events of this type hold no message."""
    return kind in SILENT or kind.startswith(_SILENT_GROUPS)


def build(record: Rec, place: RecordPlace) -> Message | None:
    """Return the message of a record; None for an event without one."""
    kind, payload = event_of(record)
    if kind == SUBAGENT:
        kind, payload = nested_event(payload)
    if is_silent(kind):
        return None
    message = _BUILDERS[kind](payload) if kind in _BUILDERS else unknown_message(payload, "type")
    if message is None:
        return None
    told = record.get("timestamp", record.get("time"))
    at, precision = milliseconds(told)
    mark = fingerprint(f"{kind}/{message_digest(message)}", str(told)) if at is not None else None
    return replace(message, at=at, precision=precision, start=place.start, size=place.size, fingerprint=mark)


view = partial(view_placed, build)


# --- Kimi CLI ---
def _turn(payload: Rec) -> Message:
    return Message("user", "human", blocks=_parts(payload.get("user_input"), "prompt"), starts_turn=True)


def _steer(payload: Rec) -> Message:
    return Message("user", "human", "queued", blocks=_parts(payload.get("user_input"), "prompt"))


def _part(payload: Rec) -> Message:
    return Message("assistant", "model", blocks=_parts([payload], "answer"))


def _call(payload: Rec) -> Message:
    return Message("assistant", "model", blocks=(_call_block(payload),))


def _call_rest(payload: Rec) -> Message:
    """Return the rest of the arguments of a call that another event had cut off. The call keeps what it was logged with."""
    text = word(payload.get("arguments_part"))
    return Message("assistant", "model", blocks=(Block("unknown", text, "tool_input", data=payload),) if text else ())


def _result(payload: Rec) -> Message:
    value = mapping(payload.get("return_value"))
    block = _result_block(payload, "tool_call_id", [value.get("output"), value.get("message")], value.get("is_error"))
    return Message("tool", "tool", "result", blocks=(block,))


def _status(payload: Rec) -> Message | None:
    keys = ("input_other", "output", "input_cache_read", "input_cache_creation")
    usage = counted_usage(payload.get("token_usage"), *keys)
    return Message("assistant", "model", native_id=word(payload.get("message_id")), usage=usage) if usage else None


def _approval(payload: Rec) -> Message | None:
    """Return what the human said with a decision; None for a decision alone, which the result of the call repeats."""
    feedback = word(payload.get("feedback"))
    return Message("user", "human", "queued", blocks=text_blocks(feedback, "prompt")) if feedback else None


def _side_question(payload: Rec) -> Message:
    return Message("user", "human", "command", blocks=text_blocks(word(payload.get("question")), "prompt"))


def _side_answer(payload: Rec) -> Message:
    answer, failure = word(payload.get("response")), word(payload.get("error"))
    return Message("assistant", "model", blocks=text_blocks(answer, "answer") + text_blocks(failure, "meta"))


def _client_message(kind: str, *keys: str) -> Callable[[Rec], Message]:
    """Return a builder of the client's own messages, with the texts under these keys."""

    def build_told(payload: Rec) -> Message:
        text = "\n".join(filter(None, (word(payload.get(key)) for key in keys)))
        return Message("system", "system", kind, blocks=text_blocks(text, "meta"))

    return build_told


# --- Kimi Code ---
def _read_appended(payload: Rec) -> Message:
    message = mapping(payload.get("message"))
    content, role = message.get("content"), word(message.get("role"))
    if role == "assistant":
        calls = tuple(_call_block(mapping(call)) for call in listing(message.get("toolCalls")))
        return Message("assistant", "model", blocks=_parts(content, "answer") + calls)
    if role == "tool":
        block = _result_block(message, "toolCallId", [content], message.get("isError"))
        return Message("tool", "tool", "result", blocks=(block,))
    if role != "user":
        return Message("system", "injected", "context", blocks=_parts(content, "meta"))
    origin, kind = _ORIGINS.get(word(mapping(message.get("origin")).get("kind")) or "user", ("injected", "context"))
    field = "prompt" if origin == "human" else "summary" if kind == "summary" else "meta"
    return Message("user", origin, kind, blocks=_parts(content, field), starts_turn=origin == "human")


def _loop_part(payload: Rec) -> Message:
    return Message("assistant", "model", blocks=_parts([payload.get("part")], "answer"))


def _loop_result(payload: Rec) -> Message:
    value = mapping(payload.get("result"))
    block = _result_block(payload, "toolCallId", [value.get("output"), value.get("note")], value.get("isError"))
    return Message("tool", "tool", "result", blocks=(block,))


def _usage(payload: Rec) -> Message | None:
    keys = ("inputOther", "output", "inputCacheRead", "inputCacheCreation")
    usage = counted_usage(payload.get("usage"), *keys)
    return Message("assistant", "model", model=word(payload.get("model")), usage=usage) if usage else None


def _compaction(payload: Rec) -> Message:
    summary = payload.get("contextSummary") or payload.get("summary")
    text = summary if isinstance(summary, str) else "\n".join(strings(mapping(summary).get("content"), "type"))
    return Message("system", "system", "compaction", blocks=text_blocks(text, "summary"))


def _undo(payload: Rec) -> Message:
    return Message("system", "system", "notice", takes_back=count(payload.get("count")) or 0)


_BUILDERS: dict[str, Callable[[Rec], Message | None]] = {
    "TurnBegin": _turn, "SteerInput": _steer, "ContentPart": _part, "ToolCall": _call, "ToolCallPart": _call_rest, "ToolResult": _result,
    "StatusUpdate": _status, "ApprovalResponse": _approval, "BtwBegin": _side_question, "BtwEnd": _side_answer,
    "StepInterrupted": _client_message("interrupt"), "StepRetry": _client_message("notice", "error_type"), "CompactionEnd": _compaction,
    "Notification": _client_message("notification", "title", "body"), "PlanDisplay": _client_message("context", "file_path", "content"),
    "context.append_message": _read_appended, "content.part": _loop_part, "tool.call": _call, "tool.result": _loop_result,
    "usage.record": _usage, "turn.cancel": _client_message("interrupt"), "context.apply_compaction": _compaction,
    "context.undo": _undo, "context.clear": _client_message("notice"),
}  # fmt: skip


# --- blocks ---
def _parts(content: Any, field: str) -> tuple[Block, ...]:
    if isinstance(content, str):
        return text_blocks(content, field)
    return tuple(_content_block(part, field) for part in listing(content))


def _content_block(part: Any, field: str) -> Block:
    fields = mapping(part)
    kind = fields.get("type")
    if kind == "text" and isinstance(fields.get("text"), str):
        return Block("text", fields["text"], field, data=part)
    if kind == "think":
        return Block("thinking", word(fields.get("think")), "thinking", data=part)
    if kind == "image_url":
        return Block("image", data=part)
    return Block("document", data=part) if kind in ("audio_url", "video_url") else unknown_block(part)


def _call_block(call: Rec) -> Block:
    """Return a call: with a function as the provider has it, or with name and arguments beside the id."""
    function = mapping(call.get("function")) or call
    name, given = word(function.get("name")), function.get("arguments", function.get("args"))
    call_id = word(call.get("toolCallId")) or word(call.get("id"))
    return call_block(call_id, name, given, call, _KINDS.get(name, ""))


def _result_block(holder: Rec, key: str, texts: list[Any], failed: Any) -> Block:
    text = "\n".join(part for told in texts for part in _texts(told))
    end = text[-_END:]
    exited = _EXITED.search(end) if failed is True else None
    reason = "rejected" if _REJECTED in end else "exit_status" if exited else error_class(end)
    status = int(exited[1]) if exited and abs(int(exited[1])) < 1 << 31 else None
    result = CallEnd(word(holder.get(key)), failed is True, reason if failed is True else "", status)
    return Block("result", text, "tool_output", result=result, data=holder)


def _texts(told: Any) -> list[str]:
    if isinstance(told, str):
        return [told] if told else []
    return [block.text or f"[{block.kind}]" for block in _parts(told, "tool_output")]
