"""Find and read the sessions of Junie.

    ~/.junie/sessions/<session>/events.jsonl    the events
    ~/.junie/sessions/index.jsonl               a list of the sessions; not read

A line has a `kind`. `UserPromptEvent` is a prompt. `SessionA2uxEvent` wraps an event of the agent: the tokens of a response, or a
block of the screen. The client writes a block again with every change of its status and once more at the end of the task. So a
block of a tool becomes a call with its result when it first says that it is finished; what repeats it is counted as known. A
block that never finished is no call.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from everturn.model.conversation import Message, TokenUsage
from everturn.sources.contract import SourceCandidate
from everturn.sources.toolkit.file_search import finder
from everturn.sources.toolkit.line_reader import Rec, listing, mapping, records
from everturn.sources.toolkit.message_reader import Facts, MessageLines, MessageReaderState, RecordFormat
from everturn.sources.toolkit.values import (
    call_block,
    count,
    digest,
    milliseconds,
    plain,
    remember,
    result_block,
    strings,
    text_blocks,
    unknown_message,
    word,
)

_FILE = "events.jsonl"
_WRAPPER, _PROMPT = "SessionA2uxEvent", "UserPromptEvent"
#: Events that hold no message.
_KNOWN = frozenset(
    "TaskStartedEvent TaskState SendToAgentEvent CancelAgentEvent UserMessagesCommittedToHistory SkillsStatusEvent "
    "SessionTitleSetEvent TaskContinueStopped".split()
)
_KNOWN_AGENT = frozenset(
    "AgentCurrentStatusUpdatedEvent AgentStateUpdatedEvent AgentTaskNameUpdatedEvent CurrentDirectoryUpdatedEvent "
    "EnvironmentVariablesUpdatedEvent TipSuggestionCreatedEvent ContextWindowReportEvent AgentPatchCreatedEvent "
    "NextPromptSuggestionEvent AvailablePullRequestsEvent AgentPlanUpdatedEvent".split()
)
_BLOCK = "BlockUpdatedEvent"
_FINISHED = ("COMPLETED", "FAILED")
_SPOKEN = {"AgentThought": "thinking", "Markdown": "answer", "Result": "answer"}
_KINDS = {"Terminal": "shell", "ViewFiles": "read", "FileChanges": "edit", "CustomAgent": "task"}
_REMEMBERED = 4000


# --- files ---
def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] != b"{":
        return None
    lines = records(head[: head.rfind(b"\n") + 1] or head)[:20]
    known = [line for line in lines if _is_event(line)]
    if not known or 2 * len(known) <= len(lines) or not any(_agent_event(line) or "prompt" in line for line in known):
        return None
    return SourceCandidate(path, "main", path.parent.name if path.name == _FILE else path.stem)


find = finder(sniff, _FILE, deepest=3)


def workspace(head: bytes) -> str:
    return next((folder for line in records(head[: head.rfind(b"\n") + 1]) if (folder := _folder(line))), "")


def _is_event(line: Rec) -> bool:
    kind = word(line.get("kind"))
    return kind in _KNOWN or (kind == _PROMPT and "prompt" in line) or (kind == _WRAPPER and bool(_agent_event(line)))


# --- messages ---
class JunieReaderState(MessageReaderState, array_like=True):
    """The state of a reader: what was said already, and the number of the response."""

    said: dict[str, bool] = {}
    response: int = 0


class JunieReader(MessageLines):
    """Reads events, each block once."""

    kind = JunieReaderState
    _state: JunieReaderState

    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        super().__init__(RecordFormat(self._build_once, _name, _facts), candidate, state)

    def _build_once(self, record: Rec) -> Message | None:
        message, state = build(record), self._state
        if message is None or message.kind == "unknown":
            return message
        if message.role == "assistant":
            state.response += message.usage is not None
            message = replace(message, provider_id=f"{self._candidate.native_id}/response-{state.response}")
        key = _identity(record)
        if key in state.said:
            return None
        if key:
            remember(state.said, key, True, _REMEMBERED)
        return message


def build(record: Rec) -> Message | None:
    """Return the message of a line, whether it repeats another one or not."""
    kind = word(record.get("kind"))
    at, precision = milliseconds(record.get("timestampMs"))
    about: dict[str, Any] = {"at": at, "precision": precision}
    if kind == _PROMPT and isinstance(record.get("prompt"), str):
        blocks = text_blocks(record["prompt"], "prompt")
        return Message(
            "user", "human", native_id=word(record.get("requestId")), blocks=blocks, starts_turn=True, **about
        )
    event = _agent_event(record)
    if kind in _KNOWN or word(event.get("kind")) in _KNOWN_AGENT:
        return None
    if word(event.get("kind")) == "LlmResponseMetadataEvent":
        return _response(event, about)
    if word(event.get("kind")).endswith(_BLOCK):
        return _block_message(event, about)
    return unknown_message(record, "kind")


def _block_message(event: Rec, about: dict[str, Any]) -> Message | None:
    name = word(event.get("kind")).removesuffix(_BLOCK)
    if field := _SPOKEN.get(name):
        text = word(event.get("result")) if name == "Result" and event.get("result") else word(event.get("text"))
        blocks = text_blocks(text, field, "thinking" if field == "thinking" else "text")
        return Message("assistant", "model", blocks=blocks, **about) if blocks else None
    if event.get("status") not in _FINISHED:
        return None
    failed = event.get("status") == "FAILED"
    output = next((word(event[key]) for key in ("output", "details") if word(event.get(key))), "")
    blocks = ()
    for number, given in enumerate(_arguments(name, event)):
        call_id = word(event.get("stepId")) + (f"/{number}" if number else "")
        kind = "create" if name == "FileChanges" and "content" in given else _KINDS.get(name, "")
        block = call_block(call_id, name or "Tool", given, event if not number else None, kind)
        blocks = (*blocks, block, result_block(call_id, output if not number else "", True if failed else None))
    return Message("assistant", "model", blocks=blocks, **about)


def _arguments(name: str, event: Rec) -> list[Rec]:
    """Return the arguments of the calls that a block stands for: one for each file that was changed."""
    if name == "Terminal":
        return [{"command": word(event.get("command"))}]
    if name == "ViewFiles":
        files = [mapping(one) for one in listing(event.get("files"))]
        return [{"path": word(one.get("relativePath"))} for one in files] or [{}]
    if name == "FileChanges":
        return [_change(mapping(one)) for one in listing(event.get("changes"))] or [{}]
    told: Rec = {
        key: event[key] for key in ("text", "toolName", "name", "arguments", "input", "prompt") if key in event
    }
    return [told]


def _change(change: Rec) -> Rec:
    path = word(change.get("afterRelativePath")) or word(change.get("beforeRelativePath"))
    after = word(mapping(change.get("afterContent")).get("text"))
    if not mapping(change.get("beforeContent")):
        return {"path": path, "content": after}
    return {"path": path, "old_string": word(mapping(change["beforeContent"]).get("text")), "new_string": after}


def _response(event: Rec, about: dict[str, Any]) -> Message | None:
    """Return the tokens of a response; those read from the cache are not part of the input."""
    used = [mapping(one) for one in listing(event.get("modelUsage"))]
    names = ("inputTokens", "outputTokens", "cacheInputTokens", "cacheCreateTokens")
    tokens = [sum(count(one.get(name)) or 0 for one in used) for name in names]
    if not any(tokens):
        return None
    main = max(used, key=lambda one: count(one.get("outputTokens")) or 0)
    return Message("assistant", "model", model=word(main.get("model")), usage=TokenUsage(*tokens), **about)


def _agent_event(record: Rec) -> Rec:
    return mapping(mapping(record.get("event")).get("agentEvent"))


def _identity(record: Rec) -> str:
    """Return what is the same in all records of a block that say the same; "" for records that are no block."""
    event = _agent_event(record)
    kind = word(event.get("kind"))
    if not kind.endswith(_BLOCK):
        return ""
    is_spoken = kind.removesuffix(_BLOCK) in _SPOKEN
    said = strings([event.get("text"), event.get("result")]) if is_spoken else []
    return digest(kind, word(event.get("stepId")), *said)


def _name(record: Rec) -> str:
    return plain("/".join(filter(None, (word(record.get("kind")), word(_agent_event(record).get("kind"))))))


def _folder(record: Rec) -> str:
    return word(_agent_event(record).get("currentDirectory"))


def _facts(record: Rec) -> Facts:
    event = _agent_event(record)
    facts: Facts = {"workspace": _folder(record)}
    if word(event.get("kind")) == "AgentTaskNameUpdatedEvent":
        title = word(event.get("taskName")) or word(event.get("name"))
        facts |= {"title": title, "title_rank": 1 if title else 0}
    return facts


view = RecordFormat(build, _name, _facts).view
