"""Reads a session piece by piece: which agent each event is of, and what the events say together.

Finds sessions on disk, and knows them by their content wherever else they lie.

    <home>/session-state/<session>/events.jsonl
    <home>/session-state/<session>.jsonl          of older clients

`<home>` is COPILOT_HOME, `~/.copilot`, or where older clients had it. Folders behind symbolic links are not entered, and
nothing below the folder of a session is looked at: the agent keeps its own files there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, fingerprint
from everturn.sources.contract import SearchPlaces, SourceCandidate, existing_folders, read_beginning
from everturn.sources.copilot_cli.message import build, is_known
from everturn.sources.toolkit.line_reader import Counted, LineReader, Rec, RecordPlace, SessionTally, add, mapping
from everturn.sources.toolkit.values import plain, state_of, word

_MOST_CALLS = 2000
_MOST_AGENTS = 500
_MODEL_TITLE = 2


class CopilotReaderState(Struct, array_like=True):
    """Everything a later reader needs."""

    open_line: bool = False
    client: str = ""
    model: str = ""
    placed: bool = False
    response: dict[str, str] = {}  # agent → the latest response
    thought: int = 0  # the latest words in a message that a reasoning event may repeat
    calls: dict[str, str] = {}  # calls that were requested or have begun → their agent
    own: dict[str, str] = {}  # calls that the human made
    agents: dict[str, str] = {}  # subagents that were linked


class CopilotReader(LineReader[CopilotReaderState]):
    """One session with the subagents in it."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        super().__init__(state_of(state, CopilotReaderState))
        self._name = found.native_id or found.path.stem

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        kind, data = word(record.get("type")), mapping(record.get("data"))
        self._learn(kind, data)
        agent = word(record.get("agentId")) or word(data.get("parentToolCallId"))
        if kind == "tool.execution_complete":
            agent = self._state.calls.get(word(data.get("toolCallId")), agent)
        if kind == "subagent.started":
            self._link(agent or word(data.get("toolCallId")), word(data.get("toolCallId")), data)
        message = build(record, place)
        if message is not None and self._is_repeated(kind, data, message, agent):
            message = None
        if message is not None:
            if kind == "tool.execution_complete" and word(data.get("toolCallId")) in self._state.own:
                message = _output_message(message)
            add(self._gathering, self._talk(agent), self._placed(message, agent))
        known = is_known(kind)
        return plain(kind), ("message" if message is not None else "known") if known else "unknown", self._state.client

    # sessions ---------------------------------------------------------------------------------------------------------
    def _talk(self, agent: str) -> SessionTally:
        if not agent:
            return self._gathering.session(self._name)
        self._link(agent, "", {})
        return self._gathering.session(f"{self._name}/{agent}", "subagent", self._name)

    def _link(self, agent: str, call_id: str, data: Rec) -> None:
        """State once that an agent was started, with the call that did it where that is known."""
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
        talk = self._gathering.session(self._name)
        if kind in ("session.start", "session.resume", "session.context_changed"):
            context = mapping(data.get("context")) or data
            version = word(data.get("copilotVersion"))
            state.client = plain(version) if version else state.client
            state.model = word(data.get("selectedModel")) or state.model
            folder = word(context.get("cwd"))
            if folder and not state.placed:
                state.placed = True
                talk.learn(workspace=folder)
            talk.learn(client=version, branch=word(context.get("branch")))
        elif kind == "session.model_change":
            state.model = word(data.get("newModel")) or state.model
        elif kind == "session.title_changed" and word(data.get("title")):
            talk.learn(title=word(data.get("title")), title_rank=_MODEL_TITLE)

    # messages ---------------------------------------------------------------------------------------------------------
    def _is_repeated(self, kind: str, data: Rec, message: Message, agent: str) -> bool:
        """A call begins that was requested in a message; a thought comes again that was part of one."""
        state, call_id = self._state, word(data.get("toolCallId"))
        if kind == "assistant.message":
            for block in message.blocks:
                if block.call is not None:
                    _put(state.calls, block.call.call_id, agent, _MOST_CALLS)
            thought = word(data.get("reasoningText"))
            state.thought = fingerprint("thought", thought) if thought else state.thought
        elif kind in ("tool.user_requested", "tool.execution_start"):
            begun = call_id in state.calls
            if kind == "tool.user_requested":
                _put(state.own, call_id, agent, _MOST_CALLS)
            _put(state.calls, call_id, agent, _MOST_CALLS)
            return begun and kind == "tool.execution_start"
        elif kind == "assistant.reasoning":
            text = message.blocks[0].text
            return not text or fingerprint("thought", text) == state.thought
        return False

    def _placed(self, message: Message, agent: str) -> Message:
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
    """The result of what the human ran is output, not the answer to a call of the model."""
    blocks = tuple(replace(block, kind="text", result=None) for block in message.blocks)
    return replace(message, kind="output", blocks=blocks)


def _put(found: dict[str, str], key: str, value: str, most: int) -> None:
    found[key] = value
    if len(found) > most:
        del found[next(iter(found))]


NAME = "copilot_cli"
HEAD = 64 << 10

_SESSIONS, _EVENTS = "session-state", "events.jsonl"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_BEGINNING = re.compile(rb'\s*\{"type":"session\.start","data":\{"sessionId":"([^"\\]{1,200})"')
_FOLDER = re.compile(rb'"cwd":("(?:[^"\\]|\\.){1,4096}")')
_FAMILIES = ("session.", "user.", "assistant.", "tool.", "hook.", "system.")
_DEEPEST = 8


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders: named by the user, by the environment, and the usual ones; each once, whatever leads to it."""
    wanted = [*places.extra.get(NAME, ())]
    named, older = places.env.get("COPILOT_HOME", "").strip(), places.env.get("XDG_STATE_HOME", "").strip()
    if named:
        wanted.append(places.home / named[2:] if named.startswith(("~/", "~\\")) else Path(named))
    wanted.append(places.home / ".copilot")
    if older:
        wanted.append(Path(older) / ".copilot")
    return existing_folders(wanted)


def find(root: Path) -> Iterator[SourceCandidate]:
    """All sessions below a root: the client's folder, its `session-state`, or any folder with sessions."""
    sessions = root / _SESSIONS
    failures: list[OSError] = []
    yield from _walk(str(sessions if sessions.is_dir() else root), failures, 0)
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    if head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")[:1] != b"{":
        return None
    session = _session(head)
    if session is None:
        return None
    named = _UUID.search(path.parent.name if path.name == _EVENTS else path.stem)
    return SourceCandidate(path, "main", session or (named[0].lower() if named else path.stem))


def workspace(head: bytes) -> str:
    """The working folder that a file names first; "" when its beginning names none."""
    from everturn.sources.toolkit.values import decode_value, word

    found = _FOLDER.search(head)
    return word(decode_value(found[1])) if found is not None else ""


def resume_command(native_id: str) -> list[str]:
    """The command that goes on with a session. A subagent's cannot be; it leads to the session it hangs on."""
    return ["copilot", f"--resume={native_id.partition('/')[0]}"]


def _session(head: bytes) -> str | None:
    """The id of the session in a file that begins like this, "" when it does not say; None when it is no session."""
    from everturn.sources.toolkit.line_reader import mapping, records
    from everturn.sources.toolkit.values import word

    found = records(head)
    if not found:
        begun = _BEGINNING.match(head)
        return begun[1].decode("utf-8", "replace") if begun else None
    first = found[0]
    kind, data = word(first.get("type")), mapping(first.get("data"))
    if kind == "session.start" and word(data.get("sessionId")):
        return word(data["sessionId"])
    is_event = first.keys() >= {"type", "data", "id", "timestamp", "parentId"} and kind.startswith(_FAMILIES)
    return "" if is_event and isinstance(first["data"], dict) else None


def _walk(folder: str, failures: list[OSError], depth: int) -> Iterator[SourceCandidate]:
    folders, is_session = [], False
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith(".jsonl") and (found := _file(entry, os.path.basename(folder))) is not None:
                    is_session = is_session or entry.name == _EVENTS
                    yield found
    except OSError as failure:
        failures.append(failure)
    if depth < _DEEPEST and not is_session:
        for path in folders:
            yield from _walk(path, failures, depth + 1)


def _file(entry: os.DirEntry[str], folder: str) -> SourceCandidate | None:
    if entry.is_symlink() and not entry.is_file():
        return None
    if entry.name == _EVENTS and _UUID.fullmatch(folder):
        return SourceCandidate(Path(entry.path), "main", folder.lower())
    return sniff(Path(entry.path), read_beginning(entry.path))
