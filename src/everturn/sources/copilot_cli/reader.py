"""Find sessions and read them: which agent each event belongs to, and which events repeat others.

    <home>/session-state/<session>/events.jsonl
    <home>/session-state/<session>.jsonl          of older clients

`<home>` is COPILOT_HOME, `~/.copilot`, or the folder of older clients. Folders behind symbolic links are not entered, nor are
those in the folder of a session, where the agent keeps its own files. Sessions elsewhere are recognised by their content.

Convert one event into a message, independently of the events around it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Block, CallEnd, CallStart, Link, Message, TokenUsage, fingerprint
from everturn.sources.contract import SourceCandidate, read_beginning
from everturn.sources.toolkit.file_search import find_files
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
from everturn.sources.toolkit.message_reader import record_message as _message
from everturn.sources.toolkit.values import (
    call_start,
    call_text,
    count,
    decode_value,
    error_class,
    plain,
    remember,
    strings,
    text_blocks,
    word,
)
from everturn.text.diffs import patched_files

_MOST_CALLS = 2000
_MOST_AGENTS = 500
_MODEL_TITLE = 2


class CopilotReaderState(Struct, array_like=True):
    open_line: bool = False
    client: str = ""
    model: str = ""
    placed: bool = False
    response: dict[str, str] = {}  # agent → its latest response
    thought: int = 0  # the latest thinking in a message, which a reasoning event may repeat
    calls: dict[str, str] = {}  # calls that were requested or started → their agent
    own: dict[str, str] = {}  # calls that the human made
    agents: dict[str, str] = {}  # subagents that are linked


class CopilotReader(LineReader[CopilotReaderState]):
    kind = CopilotReaderState

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        kind, data = word(record.get("type")), mapping(record.get("data"))
        self._learn(kind, data)
        agent = word(record.get("agentId")) or word(data.get("parentToolCallId"))
        if kind == "tool.execution_complete":
            agent = self._state.calls.get(word(data.get("toolCallId")), agent)
        if kind == "subagent.started":
            self._link(agent or word(data.get("toolCallId")), word(data.get("toolCallId")), data)
        if (message := build(record, place)) is not None and self._is_repeated(kind, data, message, agent):
            message = None
        if message is not None:
            if kind == "tool.execution_complete" and word(data.get("toolCallId")) in self._state.own:
                message = _output_message(message)
            add(self._gathering, self._session(agent), self._add_context(message, agent))
        disposition = "unknown" if not is_known(kind) else "known" if message is None else "message"
        return plain(kind), disposition, self._state.client

    def _session(self, agent: str) -> SessionTally:
        if not agent:
            return self._gathering.session(self._name)
        self._link(agent, "", {})
        return self._gathering.session(f"{self._name}/{agent}", "subagent", self._name)

    def _link(self, agent: str, call_id: str, data: Rec) -> None:
        """Link a subagent once, with the call that started it where that is known."""
        state = self._state
        if not agent or agent in state.agents:
            return
        remember(state.agents, agent, call_id, _MOST_AGENTS)
        child = self._gathering.session(f"{self._name}/{agent}", "subagent", self._name)
        child.learn(agent_name=word(data.get("agentDisplayName")) or word(data.get("agentName")))
        child.links.append(Link("subagent_of", self._name))
        self._gathering.session(self._name).links.append(Link("spawned", child.native_id, call_id or agent))

    def _learn(self, kind: str, data: Rec) -> None:
        state = self._state
        session = self._gathering.session(self._name)
        if kind in ("session.start", "session.resume", "session.context_changed"):
            context = mapping(data.get("context")) or data
            version = word(data.get("copilotVersion"))
            state.client = plain(version) if version else state.client
            state.model = word(data.get("selectedModel")) or state.model
            if (folder := word(context.get("cwd"))) and not state.placed:
                state.placed = True
                session.learn(workspace=folder)
            session.learn(client=version, branch=word(context.get("branch")))
        elif kind == "session.model_change":
            state.model = word(data.get("newModel")) or state.model
        elif kind == "session.title_changed" and word(data.get("title")):
            session.learn(title=word(data.get("title")), title_rank=_MODEL_TITLE)

    def _is_repeated(self, kind: str, data: Rec, message: Message, agent: str) -> bool:
        """Return whether an event repeats an earlier message: the start of a requested call, or its thinking."""
        state, call_id = self._state, word(data.get("toolCallId"))
        if kind == "assistant.message":
            for block in message.blocks:
                if block.call is not None:
                    remember(state.calls, block.call.call_id, agent, _MOST_CALLS)
            thought = word(data.get("reasoningText"))
            state.thought = fingerprint("thought", thought) if thought else state.thought
        elif kind in ("tool.user_requested", "tool.execution_start"):
            is_requested = call_id in state.calls
            if kind == "tool.user_requested":
                remember(state.own, call_id, agent, _MOST_CALLS)
            remember(state.calls, call_id, agent, _MOST_CALLS)
            return is_requested and kind == "tool.execution_start"
        elif kind == "assistant.reasoning":
            text = message.blocks[0].text
            return not text or fingerprint("thought", text) == state.thought
        return False

    def _add_context(self, message: Message, agent: str) -> Message:
        """Return the message with its response and model; in a subagent, prompts come from an agent."""
        state = self._state
        if message.origin == "human" and agent:
            return replace(message, origin="agent")
        if message.origin != "model":
            return message
        if message.provider_id:
            remember(state.response, agent, message.provider_id, _MOST_AGENTS)
        response = message.provider_id or state.response.get(agent, "")
        return replace(message, provider_id=response, model=message.model or state.model)


def _output_message(message: Message) -> Message:
    """Return the result of a command of the human as output: it answers no call of the model."""
    blocks = tuple(replace(block, kind="text", result=None) for block in message.blocks)
    return replace(message, kind="output", blocks=blocks)


# --- files ---

_SESSIONS, _EVENTS = "session-state", "events.jsonl"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_BEGINNING = re.compile(rb'\s*\{"type":"session\.start","data":\{"sessionId":"([^"\\]{1,200})"')
_FOLDER = re.compile(rb'"cwd":("(?:[^"\\]|\\.){1,4096}")')
_FAMILIES = ("session.", "user.", "assistant.", "tool.", "hook.", "system.")


def find(root: Path) -> Iterator[SourceCandidate]:
    """Yield the sessions below a root: the client's folder, its `session-state`, or any folder with sessions."""
    sessions = root / _SESSIONS
    return find_files(sessions if sessions.is_dir() else root, _pick_session, closed_by=_EVENTS)


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")[:1] != b"{":
        return None
    if (session := _find_session(head)) is None:
        return None
    named = _UUID.search(path.parent.name if path.name == _EVENTS else path.stem)
    return SourceCandidate(path, "main", session or (named[0].lower() if named else path.stem))


def workspace(head: bytes) -> str:
    return word(decode_value(match[1])) if (match := _FOLDER.search(head)) is not None else ""


def _find_session(head: bytes) -> str | None:
    """Return the session id in a file that begins like this; "" when it names none, None when it is no session."""
    if (first := next(iter(records(head)), None)) is None:
        beginning = _BEGINNING.match(head)
        return beginning[1].decode("utf-8", "replace") if beginning else None
    kind, data = word(first.get("type")), mapping(first.get("data"))
    if kind == "session.start" and word(data.get("sessionId")):
        return word(data["sessionId"])
    is_event = first.keys() >= {"type", "data", "id", "timestamp", "parentId"} and kind.startswith(_FAMILIES)
    return "" if is_event and isinstance(first["data"], dict) else None


def _pick_session(entry: os.DirEntry[str]) -> SourceCandidate | None:
    if not entry.name.endswith(".jsonl") or (entry.is_symlink() and not entry.is_file()):
        return None
    path = Path(entry.path)
    if entry.name == _EVENTS and _UUID.fullmatch(path.parent.name):
        return SourceCandidate(path, "main", path.parent.name.lower())
    return sniff(path, read_beginning(path))


# --- Convert one event into a message, independently of the events around it ---
#: Events that hold no messages, or repeat others.
SILENT = frozenset(
    "session.start session.resume session.idle session.title_changed session.model_change session.mode_changed "
    "session.mode_notice_delivered session.plan_changed session.todos_changed session.workspace_file_changed "
    "session.context_changed session.usage_info session.usage_checkpoint session.compaction_start session.shutdown "
    "session.remote_steerable_changed session.permissions_changed session.limits_changed session.auto_mode_resolved "
    "session.schedule_created session.schedule_cancelled session.schedule_rearmed session.binary_asset "
    "session.autopilot_objective_changed session.tools_updated session.background_tasks_changed session.skills_loaded "
    "session.custom_agents_updated session.mcp_servers_loaded session.mcp_server_status_changed "
    "session.extensions_loaded assistant.turn_start assistant.turn_end assistant.intent assistant.message_start "
    "assistant.message_delta assistant.reasoning_delta assistant.streaming_delta assistant.tool_call_delta "
    "assistant.idle pending_messages.modified tool.execution_partial_result tool.execution_progress hook.start "
    "hook.progress subagent.started subagent.configured subagent.completed subagent.selected subagent.deselected "
    "permission.requested permission.completed user_input.requested user_input.completed elicitation.requested "
    "elicitation.completed sampling.requested sampling.completed mcp.oauth_required mcp.oauth_completed "
    "external_tool.requested external_tool.completed command.queued command.execute command.completed "
    "commands.changed capabilities.changed exit_plan_mode.requested exit_plan_mode.completed".split()
)
_NOTICES = frozenset(
    "session.info session.warning session.truncation session.snapshot_rewind session.handoff session.task_complete "
    "session.context_cleared subagent.failed model.call_failure".split()
)
_TOOLS = {
    **dict.fromkeys(
        ("read_bash", "write_bash", "stop_bash", "list_bash", "read_powershell", "write_powershell"), "shell"
    ),
    **dict.fromkeys(("read_agent", "write_agent", "list_agents"), "task"),
    **dict.fromkeys(("report_intent", "update_todo"), "plan"),
    "rg": "search",
}
_EXITED = re.compile(r"<exited with exit code (-?\d{1,9})>\s*\Z")
_HOOK_TEXTS = ("additionalContext", "systemMessage", "reason", "stopReason", "permissionDecisionReason")
_NOT_TEXT = "type infoType warningType errorType requestId toolCallId providerCallId url stack".split()


def build(record: Rec, place: RecordPlace) -> Message | None:
    """Return the message of an event; None when it is known to hold none."""
    kind = word(record.get("type"))
    if kind in SILENT:
        return None
    if kind in _NOTICES:
        return _notice(record, place)
    return _BUILDERS.get(kind, _unknown)(record, place)


view = partial(view_placed, build)


def is_known(kind: str) -> bool:
    return kind in SILENT or kind in _NOTICES or kind in _BUILDERS


def _unknown(record: Rec, place: RecordPlace) -> Message:
    text = "\n".join(strings(record, "type", "id", "parentId", "timestamp"))
    return _message(record, place, "system", "system", text_blocks(text, "meta", "unknown"), "unknown")


# --- prompts and answers ---
def _user(record: Rec, place: RecordPlace) -> Message:
    data = mapping(record.get("data"))
    content, sent = word(data.get("content")), word(data.get("transformedContent"))
    is_human = word(data.get("source")) in ("", "user") and data.get("isAutopilotContinuation") is not True
    blocks = text_blocks(content, "prompt" if is_human else "meta")
    if content and content in sent and len(sent) > len(content):
        blocks += text_blocks(sent.replace(content, "", 1).strip(), "meta")  # context added by the client
    blocks += tuple(map(_attachment_block, listing(data.get("attachments"))))
    if not is_human:
        return _message(record, place, "user", "injected", blocks, "context")
    is_steering = data.get("delivery") == "steering"
    message = _message(record, place, "user", "human", blocks, "queued" if is_steering else "text")
    return message if is_steering else replace(message, starts_turn=True)


def _attachment_block(attachment: Any) -> Block:
    data = mapping(attachment)
    if word(data.get("mimeType")).startswith("image/"):
        return Block("image", data=attachment)
    texts = [word(data.get(key)) for key in ("displayName", "path", "filePath", "title", "text", "url")]
    return Block("document", "\n".join(dict.fromkeys(filter(None, texts))), "meta", data=attachment)


def _assistant(record: Rec, place: RecordPlace) -> Message:
    data = mapping(record.get("data"))
    blocks = text_blocks(word(data.get("reasoningText")), "thinking", "thinking")
    blocks += text_blocks(word(data.get("content")), "answer")
    for request in listing(data.get("toolRequests")):
        unknown = Block("unknown", "\n".join(strings(request)), "meta", data=request)
        blocks += (_call_block(request) if isinstance(request, dict) else unknown,)
    output = count(data.get("outputTokens"))
    return replace(
        _message(record, place, "assistant", "model", blocks),
        provider_id=word(data.get("messageId")),
        model=word(data.get("model")),
        usage=TokenUsage(output=output) if output else None,
    )


def _reasoning(record: Rec, place: RecordPlace) -> Message:
    thought = Block("thinking", word(mapping(record.get("data")).get("content")), "thinking")
    return _message(record, place, "assistant", "model", (thought,))


def _usage(record: Rec, place: RecordPlace) -> Message:
    data = mapping(record.get("data"))
    tokens = [count(data.get(f"{name}Tokens")) or 0 for name in ("input", "output", "cacheRead", "cacheWrite")]
    given, output, cached, written = tokens
    usage = TokenUsage(max(given - cached - written, 0), output, cached, written)
    message = _message(record, place, "assistant", "model", (), "notice")
    return replace(message, usage=usage, model=word(data.get("model")))


def _system(record: Rec, place: RecordPlace) -> Message:
    text = word(mapping(record.get("data")).get("content"))
    return _message(record, place, "system", "injected", text_blocks(text, "meta"), "context")


def _notification(record: Rec, place: RecordPlace) -> Message:
    text = word(mapping(record.get("data")).get("content"))
    return _message(record, place, "user", "agent", text_blocks(text, "meta"), "notification")


# --- tools ---
def _call_start(data: Rec) -> CallStart:
    """Return the call in a request of the model, or in the event of its start."""
    name, arguments = word(data.get("name")) or word(data.get("toolName")), data.get("arguments")
    start = call_start(word(data.get("toolCallId")), name, arguments)
    if (kind := _TOOLS.get(name)) is not None:
        return replace(start, kind=kind, command=word(mapping(arguments).get("input")) if kind == "shell" else "")
    patch = patched_files(arguments) if isinstance(arguments, str) else []
    return replace(start, kind=patch[0][0], path=patch[0][1]) if patch else start


def _call_block(data: Rec) -> Block:
    start = _call_start(data)
    return Block("call", call_text(start), "tool_input", call=start, data=data)


def _call_message(record: Rec, place: RecordPlace) -> Message:
    """Return a call whose request was not recorded: one of a subagent, or of the human."""
    return _message(record, place, "assistant", "model", (_call_block(mapping(record.get("data"))),))


def _shell_prompt(record: Rec, place: RecordPlace) -> Message:
    start = _call_start(mapping(record.get("data")))
    blocks = text_blocks(start.command or call_text(start), "prompt")
    return replace(_message(record, place, "user", "human", blocks, "shell"), starts_turn=True)


def _result_message(record: Rec, place: RecordPlace) -> Message:
    data = mapping(record.get("data"))
    result, error = data.get("result"), mapping(data.get("error"))
    value = mapping(result)
    output = result if isinstance(result, str) else word(value.get("content")) or word(value.get("detailedContent"))
    failed = data.get("success") is False
    text = "\n".join(filter(None, (output, word(error.get("message")))))
    exited = _EXITED.search(output)
    status = int(exited[1]) if exited else None
    reason = _error_class(word(error.get("code")), text) if failed else "exit_status" if status else ""
    end = CallEnd(word(data.get("toolCallId")), failed or bool(status), reason, status)
    block = Block("result", text, "tool_output", result=end, data=data)
    return _message(record, place, "tool", "tool", (block,), "result")


def _error_class(code: str, text: str) -> str:
    if code in ("rejected", "denied", "timeout"):
        return "timeout" if code == "timeout" else "rejected"
    return error_class(text)


# --- notices ---
def _notice(record: Rec, place: RecordPlace) -> Message:
    text = "\n".join(strings(mapping(record.get("data")), *_NOT_TEXT))
    return _message(record, place, "system", "system", text_blocks(text, "meta"), "notice")


def _error(record: Rec, place: RecordPlace) -> Message:
    return replace(_notice(record, place), role="assistant")


def _compaction(record: Rec, place: RecordPlace) -> Message:
    data = mapping(record.get("data"))
    if data.get("success") is False:
        return _notice(record, place)
    blocks = text_blocks(word(data.get("summaryContent")), "summary")
    return _message(record, place, "system", "system", blocks, "compaction")


def _interrupt(record: Rec, place: RecordPlace) -> Message:
    text = word(mapping(record.get("data")).get("reason"))
    return _message(record, place, "system", "system", text_blocks(text, "meta"), "interrupt")


def _hook(record: Rec, place: RecordPlace) -> Message | None:
    """Return the output of a hook; None for the many hooks without any."""
    data = mapping(record.get("data"))
    output = mapping(data.get("output"))
    values = [output.get(key) for key in _HOOK_TEXTS] + [mapping(data.get("error")).get("message")]
    text = "\n".join(strings(values))
    return _message(record, place, "user", "injected", text_blocks(text, "meta"), "context") if text else None


def _skill(record: Rec, place: RecordPlace) -> Message:
    """Return the name of an invoked skill. Its text follows as a message of its own."""
    data = mapping(record.get("data"))
    text = "\n".join(filter(None, (word(data.get(key)) for key in ("name", "description", "path"))))
    return _message(record, place, "system", "injected", text_blocks(text, "meta"), "context")


_BUILDERS: dict[str, Callable[[Rec, RecordPlace], Message | None]] = {
    "user.message": _user, "assistant.message": _assistant, "assistant.reasoning": _reasoning,
    "assistant.usage": _usage, "system.message": _system, "system.notification": _notification,
    "tool.user_requested": _shell_prompt, "tool.execution_start": _call_message,
    "tool.execution_complete": _result_message, "session.error": _error, "session.compaction_complete": _compaction,
    "abort": _interrupt, "hook.end": _hook, "skill.invoked": _skill,
}  # fmt: skip
