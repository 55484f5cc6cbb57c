"""Find, unpack and read the conversations of OpenHands.

    ~/.openhands/conversations/<id>/base_state.json             the agent, its model and its folder
    ~/.openhands/conversations/<id>/events/event-*.json         one event each
    trajectory.json, anywhere                                   a list of events, as older versions exported it

`unpack` writes the folder as lines: a head with facts that never change, then the events in the order of their names, each as
it is in its file. An event of the current versions has a `kind` (`MessageEvent`, `ActionEvent`, `ObservationEvent`, …); one of
older versions has an `action` or an `observation`, and an observation names the action that caused it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from everturn.model.conversation import Block, Message
from everturn.sources.contract import Member, PartlyUnread, SourceCandidate, SourceReader
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.json_document import decode_item, first_object
from everturn.sources.toolkit.line_reader import Rec, mapping
from everturn.sources.toolkit.message_reader import Facts, MessageElements, MessageLines, RecordFormat, view_element
from everturn.sources.toolkit.values import (
    blocks_of,
    call_block,
    exit_code,
    milliseconds,
    result_block,
    strings,
    text_blocks,
    tool_kind,
    unknown_message,
    usage_of,
    word,
)

_STATE, _EVENTS = "base_state.json", "events"
_LARGEST = 32 << 20
_OLD = re.compile(rb'"source"\s*:\s*"(?:user|agent|environment)"')
_FOLDERS = ("working_dir", "cwd", "path", "root")
#: Kinds of tools and actions whose names the toolkit does not know.
_KINDS = {
    "run": "shell", "run_ipython": "shell", "execute_ipython_cell": "shell", "execute_bash": "shell", "terminal": "shell",
    "file_editor": "edit", "edit": "edit", "browse": "fetch", "browse_interactive": "fetch", "finish": "other",
    "think": "plan", "task_tracker": "plan", "delegate": "task",
}  # fmt: skip
#: Actions of older versions that are no calls of tools.
_SAID = frozenset(("message", "system", "change_agent_state", "null", "recall", "condensation", "condensation_request"))
_NO_NEWS = frozenset(("agent_state_changed", "null", "recall", "condense", ""))


# --- files ---
def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    folder = path.parent.parent if path.parent.name == _EVENTS else path.parent
    is_part = path.name == _STATE or path.parent.name == _EVENTS
    if is_part and (folder / _STATE).is_file() and (folder / _EVENTS).is_dir():
        return SourceCandidate(folder / _STATE, "bundle", folder.name, stamp=_stamp(folder))
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start.startswith(b"[") or not _OLD.search(start):
        return None
    first = first_object(head)
    is_event = "source" in first and first.keys() & {"action", "observation"} and "id" in first
    return SourceCandidate(path, "main", _trajectory_name(path)) if is_event else None


find = finder(sniff, _STATE, skipped=(_EVENTS,), deepest=4)


def _trajectory_name(path: Path) -> str:
    return path.parent.name if path.stem in ("trajectory", "events") and path.parent.name else path.stem


def _stamp(folder: Path) -> int:
    """Return the time of the newest change of a conversation, in nanoseconds."""
    try:
        with os.scandir(folder / _EVENTS) as events:
            return max((entry.stat().st_mtime_ns for entry in events), default=0)
    except OSError:
        return 0


# --- folders ---
def unpack(candidate: SourceCandidate, path: Path) -> Iterator[Member]:
    name = candidate.native_id or path.parent.name
    problems: list[str] = []
    yield Member(name, _lines(name, path, problems), native_id=name)
    if problems:
        raise PartlyUnread(problems)


def _lines(name: str, path: Path, problems: list[str]) -> Iterator[bytes]:
    found = decode_item(path.read_bytes())[0] if path.stat().st_size <= _LARGEST else None
    if not isinstance(found, dict):
        problems.append("the state of the conversation is damaged or too large")
    state = mapping(found)
    workspace, llm = mapping(state.get("workspace")), mapping(mapping(state.get("agent")).get("llm"))
    folder = next((word(workspace[key]) for key in _FOLDERS if word(workspace.get(key))), "")
    yield msgspec.json.encode({"conversation": name, "workspace": folder, "model": word(llm.get("model"))}) + b"\n"
    for event in sorted((path.parent / _EVENTS).glob("*.json")):
        if event.is_symlink() or not event.is_file():
            problems.append("an event is not a file, or a link to one; it is not read")
        elif event.stat().st_size > _LARGEST:
            problems.append(f"an event has more than {_LARGEST >> 20} MB; it is not read")
        else:
            yield _event_line(event.name, event.read_bytes().strip())


def _event_line(name: str, raw: bytes) -> bytes:
    """Return an event as it is in its file, if that is valid JSON on one line; else its text."""
    is_flat = (
        b"\n" not in raw and b"\r" not in raw and isinstance(decode_item(raw)[0], dict) and not decode_item(raw)[1]
    )
    key = msgspec.json.encode(name)
    if is_flat:
        return b'{"file":' + key + b',"event":' + raw + b"}\n"
    return msgspec.json.encode({"file": name, "text": raw.decode("utf-8", "replace")}) + b"\n"


# --- messages ---
def reader(candidate: SourceCandidate, state: bytes) -> SourceReader:
    form = RecordFormat(build, _name, _facts)
    if "#" in candidate.path.name or candidate.kind == "bundle":
        return MessageLines(form, candidate, state)
    return MessageElements(form, "events", candidate, state, lambda key, value: {})


def build(record: Rec) -> Message | None:
    """Return the message of a line of a folder, or of an event of a trajectory."""
    if "conversation" in record and "file" not in record:
        return None
    event = _event(record)
    at, precision = milliseconds(event.get("timestamp"))
    made = _current(event) if "kind" in event else _old(event)
    return replace(made, at=at, precision=precision, native_id=_id(event)) if made is not None else None


view = partial(view_element, build)


def _event(record: Rec) -> Rec:
    if "file" not in record:
        return record
    return mapping(record.get("event")) or mapping(decode_item(word(record.get("text")).encode("utf-8", "replace"))[0])


def _id(event: Rec) -> str:
    name = event.get("id")
    return str(name) if isinstance(name, int) and not isinstance(name, bool) else word(name)


def _name(record: Rec) -> str:
    event = _event(record)
    return word(event.get("kind")) or word(event.get("action")) or word(event.get("observation")) or "head"


def _facts(record: Rec) -> Facts:
    if "conversation" in record and "file" not in record:
        return {"workspace": word(record.get("workspace"))}
    about = mapping(mapping(_event(record).get("observation")).get("metadata"))
    return {"workspace": folder} if (folder := word(about.get("working_dir"))) else {}


def _current(event: Rec) -> Message | None:
    kind = word(event.get("kind"))
    made = _EVENTS_OF.get(kind)
    if made is not None:
        return made(event)
    return None if kind in _SILENT else unknown_message(event, "kind", "id", "timestamp", "source")


def _message_event(event: Rec) -> Message:
    said = mapping(event.get("llm_message"))
    role, content = word(said.get("role")), said.get("content")
    if role == "assistant":
        thought = text_blocks(
            word(event.get("reasoning_content") or said.get("reasoning_content")), "thinking", "thinking"
        )
        blocks = (*thought, *blocks_of(content, "answer"))
        return Message("assistant", "model", provider_id=word(event.get("llm_response_id")), blocks=blocks)
    if event.get("source") == "user":
        return Message("user", "human", blocks=tuple(blocks_of(content, "prompt")), starts_turn=True)
    return Message("user", "injected", "context", blocks=tuple(blocks_of(content, "meta")))


def _action_event(event: Rec) -> Message:
    call, action = mapping(event.get("tool_call")), mapping(event.get("action"))
    name = word(event.get("tool_name")) or word(call.get("name"))
    given = call.get("arguments") or {key: value for key, value in action.items() if key != "kind"}
    thought = text_blocks(word(event.get("reasoning_content")), "thinking", "thinking")
    blocks = (
        *thought,
        *blocks_of(event.get("thought"), "answer"),
        call_block(word(event.get("tool_call_id")) or word(call.get("id")), name, given, call, _kind(name, action)),
    )
    return Message("assistant", "model", provider_id=word(event.get("llm_response_id")), blocks=blocks)


def _observation_event(event: Rec) -> Message:
    told = mapping(event.get("observation"))
    text = "\n".join(strings(told.get("content", told.get("output", told)), "type", "kind"))
    failed = True if told.get("is_error") is True or word(event.get("error")) else None
    block = result_block(word(event.get("tool_call_id")), text or word(event.get("error")), failed, told)
    code = exit_code(told.get("exit_code", mapping(told.get("metadata")).get("exit_code")))
    return Message("tool", "tool", "result", blocks=(_with_code(block, code),))


def _error_event(event: Rec) -> Message:
    text = word(event.get("error")) or word(event.get("rejection_reason"))
    is_rejected = event.get("kind") == "UserRejectObservation"
    block = result_block(word(event.get("tool_call_id")), text, True, event)
    if is_rejected and block.result is not None:
        block = replace(block, result=replace(block.result, error_class="rejected"))
    return Message("tool", "tool", "result", blocks=(block,))


def _system_event(event: Rec) -> Message:
    prompt = event.get("system_prompt")
    blocks = blocks_of(prompt, "meta") if not isinstance(prompt, dict) else blocks_of(prompt.get("text"), "meta")
    return Message("system", "injected", "context", blocks=tuple(blocks))


def _condensation(event: Rec) -> Message:
    return Message("system", "system", "compaction", blocks=text_blocks(word(event.get("summary")), "summary"))


_EVENTS_OF: dict[str, Callable[[Rec], Message]] = {
    "MessageEvent": _message_event,
    "ActionEvent": _action_event,
    "ObservationEvent": _observation_event,
    "AgentErrorEvent": _error_event,
    "UserRejectObservation": _error_event,
    "SystemPromptEvent": _system_event,
    "Condensation": _condensation,
    "CondensationSummaryEvent": _condensation,
}
_SILENT = frozenset(
    ("ConversationStateUpdateEvent", "PauseEvent", "CondensationRequest", "LLMCompletionLogEvent", "TokenEvent")
)


def _old(event: Rec) -> Message | None:
    """Return the message of an event of older versions."""
    action, args = event.get("action"), mapping(event.get("args"))
    if isinstance(action, str):
        if action not in _SAID:
            return _old_call(event, action, args)
        text = word(args.get("content")) or word(event.get("message"))
        if action == "message" and event.get("source") == "user":
            return Message("user", "human", blocks=text_blocks(text, "prompt"), starts_turn=True)
        if action == "message":
            return replace(_old_response(event), blocks=text_blocks(text, "answer"))
        if action == "system":
            return Message("system", "injected", "context", blocks=text_blocks(text, "meta"))
        if action == "condensation":
            return Message("system", "system", "compaction", blocks=text_blocks(word(args.get("summary")), "summary"))
        return None
    if isinstance(told := event.get("observation"), str):
        return _old_result(event) if told not in _NO_NEWS else None
    return unknown_message(event)


def _old_response(event: Rec) -> Message:
    response = mapping(mapping(event.get("tool_call_metadata")).get("model_response"))
    return Message(
        "assistant", "model", provider_id=word(response.get("id")), model=word(response.get("model")),
        usage=usage_of(response.get("usage")),
    )  # fmt: skip


def _old_call(event: Rec, action: str, args: Rec) -> Message:
    about = mapping(event.get("tool_call_metadata"))
    name = word(about.get("function_name")) or action
    call_id = word(about.get("tool_call_id")) or f"#{_id(event)}"
    given = {key: value for key, value in args.items() if key != "thought"}
    thought = text_blocks(word(args.get("thought")), "answer")
    return replace(_old_response(event), blocks=(*thought, call_block(call_id, name, given, event, _kind(name, args))))


def _old_result(event: Rec) -> Message:
    about, extras = mapping(event.get("tool_call_metadata")), mapping(event.get("extras"))
    cause = event.get("cause")
    call_id = word(about.get("tool_call_id")) or (f"#{cause}" if isinstance(cause, int) else "")
    failed = True if event.get("observation") in ("error", "user_rejected") or event.get("success") is False else None
    block = result_block(call_id, word(event.get("content")), failed, event)
    code = exit_code(mapping(extras.get("metadata")).get("exit_code", extras.get("exit_code")))
    return Message("tool", "tool", "result", blocks=(_with_code(block, code),))


def _kind(name: str, args: Rec) -> str:
    if name in ("file_editor", "str_replace_editor"):
        return tool_kind("str_replace_editor", args)
    return _KINDS.get(name) or tool_kind(name, args)


def _with_code(block: Block, code: int | None) -> Block:
    if code is None or block.result is None:
        return block
    end = block.result
    failure = end.error_class or ("exit_status" if code else "")
    return replace(block, result=replace(end, exit_status=code, is_error=bool(failure), error_class=failure))
