"""Find sessions and read them: which agent each event belongs to, and which events repeat others.

    <home>/session-state/<session>/events.jsonl
    <home>/session-state/<session>.jsonl          of older clients

`<home>` is COPILOT_HOME, `~/.copilot`, or the folder of older clients. Folders behind symbolic links are not entered, nor are
those in the folder of a session, where the agent keeps its own files. Sessions elsewhere are recognised by their content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, fingerprint
from everturn.sources.contract import SourceCandidate, read_beginning
from everturn.sources.copilot_cli.message import build, is_known
from everturn.sources.toolkit.file_search import find_files
from everturn.sources.toolkit.line_reader import (
    Counted,
    LineReader,
    Rec,
    RecordPlace,
    SessionTally,
    add,
    mapping,
    records,
)
from everturn.sources.toolkit.values import decode_value, plain, state_of, word

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
    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        super().__init__(state_of(state, CopilotReaderState))
        self._name = candidate.native_id or candidate.path.stem

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
        _put(state.agents, agent, call_id, _MOST_AGENTS)
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
                    _put(state.calls, block.call.call_id, agent, _MOST_CALLS)
            thought = word(data.get("reasoningText"))
            state.thought = fingerprint("thought", thought) if thought else state.thought
        elif kind in ("tool.user_requested", "tool.execution_start"):
            is_requested = call_id in state.calls
            if kind == "tool.user_requested":
                _put(state.own, call_id, agent, _MOST_CALLS)
            _put(state.calls, call_id, agent, _MOST_CALLS)
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
            _put(state.response, agent, message.provider_id, _MOST_AGENTS)
        response = message.provider_id or state.response.get(agent, "")
        return replace(message, provider_id=response, model=message.model or state.model)


def _output_message(message: Message) -> Message:
    """Return the result of a command of the human as output: it answers no call of the model."""
    blocks = tuple(replace(block, kind="text", result=None) for block in message.blocks)
    return replace(message, kind="output", blocks=blocks)


def _put(values: dict[str, str], key: str, value: str, most: int) -> None:
    """Set a value; beyond `most`, forget the oldest."""
    values[key] = value
    if len(values) > most:
        del values[next(iter(values))]


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
