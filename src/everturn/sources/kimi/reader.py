"""Finds logs, recognises them by their content, and reads them event by event.

    ~/.kimi/sessions/<hash of the working folder>/<session>/wire.jsonl                        Kimi CLI
    ~/.kimi/sessions/<hash of the working folder>/<session>/subagents/<agent>/wire.jsonl      its subagents
    ~/.kimi-code/sessions/<working folder>/<session>/agents/<agent>/wire.jsonl                Kimi Code: `main`, and subagents

KIMI_SHARE_DIR and KIMI_CODE_HOME name other folders. A log does not name its session: the folder does. `context.jsonl`
repeats the log as the model saw it and is not read. Folders behind symbolic links are not entered.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, fingerprint
from everturn.sources.contract import SourceCandidate, read_beginning
from everturn.sources.kimi.message import SUBAGENT, build, event_of, is_known, nested_event
from everturn.sources.toolkit.file_search import find_in_folders
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
from everturn.sources.toolkit.values import decode_value, plain, state_of, word

_LOG = "wire.jsonl"
_FOLDERS = ("sessions", "imported_sessions")
_MOST_SETTINGS = 4 << 20


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
        if where := word(_settings(folder / "state.json").get("workDir")):
            return where
    for folder in path.parents[1:5]:
        for known in listing(_settings(folder.parent.parent / "kimi.json").get("work_dirs")):
            where = word(mapping(known).get("path"))
            if where and folder.name.endswith(md5(where.encode(), usedforsecurity=False).hexdigest()):
                return where
    return ""


def _settings(path: Path) -> Rec:
    return mapping(decode_value(read_beginning(path, _MOST_SETTINGS) or b"null"))


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
    """What a later reader continues from."""

    open_line: bool = False
    version: str = ""  # of the protocol
    step: str = ""  # the response under way
    steered: bool = False  # the next prompt was typed while the agent worked
    linked: bool = False
    children: dict[str, str] = {}  # subagent → its response under way, if only this log has its events


class KimiReader(LineReader[KimiReaderState]):
    """Reads the log of one session, or of one subagent."""

    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        super().__init__(state_of(state, KimiReaderState))
        self._candidate = candidate
        self._name = candidate.native_id or candidate.path.stem

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        kind, payload = event_of(record)
        session = self._gathering.session(self._name, self._candidate.kind, self._candidate.parent)
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
            session.links.append(Link("subagent_of", self._candidate.parent, hint=_hint(task) if task else 0))
        for block in message.blocks:
            if block.call is not None and block.call.prompt:
                session.links.append(Link("spawned", "", block.call.call_id, _hint(block.call.prompt)))
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


def _hint(prompt: str) -> int:
    return fingerprint("prompt", prompt)
