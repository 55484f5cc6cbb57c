"""Finds sessions, recognises them by their content, and reads them record by record.

    <home>/projects/<project>/chats/<session>.jsonl                      one per session
    <home>/projects/<project>/subagents/<session>/agent-<id>.jsonl       subagents of that session

`<home>` is QWEN_RUNTIME_DIR, QWEN_HOME or `~/.qwen`. Folders behind symbolic links are not entered.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, fingerprint
from everturn.sources.contract import SourceCandidate, read_beginning
from everturn.sources.qwen_code.message import build, record_kind
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
from everturn.sources.toolkit.values import digest, plain, state_of, word

_TYPES = frozenset(("user", "assistant", "tool_result", "system"))
_MODEL_TITLE, _HUMAN_TITLE = 2, 3
#: So many turns can be taken back.
_TURNS = 200


def find(root: Path) -> Iterator[SourceCandidate]:
    """Yield the sessions below a root: the client's folder, or any folder with sessions."""
    projects = root / "projects"
    return find_files(projects if projects.is_dir() else root, _pick_by_content)


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    found = [record for record in records(head) if _is_own(record)]
    if not found:
        return None
    session = word(found[0].get("sessionId"))
    agent = next((word(record.get("agentId")) for record in found if record.get("isSidechain") is True), "")
    if agent:
        return SourceCandidate(path, "subagent", f"{session}/{agent}", session)
    return SourceCandidate(path, "main", session)


def workspace(head: bytes) -> str:
    return next((word(record.get("cwd")) for record in records(head) if _is_own(record) and record.get("cwd")), "")


def _is_own(record: Rec) -> bool:
    if word(record.get("type")) not in _TYPES or not (word(record.get("uuid")) and word(record.get("sessionId"))):
        return False
    return isinstance(mapping(record.get("message")).get("parts"), list) or isinstance(
        record.get("systemPayload"), dict
    )


def _pick_by_content(entry: os.DirEntry[str]) -> SourceCandidate | None:
    is_file = entry.name.endswith(".jsonl") and (not entry.is_symlink() or entry.is_file())
    return sniff(Path(entry.path), read_beginning(entry.path)) if is_file else None


class QwenReaderState(Struct, array_like=True):
    """What a later reader continues from."""

    open_line: bool = False
    told: list[str] = []  # facts that were told: they repeat in every record
    turns: list[str] = []  # a digest of the record before each turn, to count the turns that are taken back
    response: str = ""  # of a subagent: the first record of the response under way
    linked: bool = False
    forked: bool = False


class QwenReader(LineReader[QwenReaderState]):
    """Reads one session, or one subagent of a session."""

    def __init__(self, candidate: SourceCandidate, state: bytes) -> None:
        super().__init__(state_of(state, QwenReaderState))
        self._candidate = candidate

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        candidate = self._candidate
        session = self._gathering.session(candidate.native_id or candidate.path.stem, candidate.kind, candidate.parent)
        self._learn(session, record)
        message = build(record, place)
        if message is not None:
            message = self._in_context(session, record, message)
            add(self._gathering, session, message)
        name, is_known = record_kind(record)
        disposition = "unknown" if not is_known else "known" if message is None else "message"
        return "/".join(map(plain, name.split("/", 1))), disposition, plain(record.get("version"))

    # --- facts ---
    def _learn(self, session: SessionTally, record: Rec) -> None:
        facts = [word(record.get(key)) for key in ("cwd", "gitBranch", "version", "agentName")]
        if facts != self._state.told:
            self._state.told = facts
            session.learn(workspace=facts[0], branch=facts[1], client=facts[2], agent_name=facts[3])
        note = mapping(record.get("systemPayload"))
        if title := word(note.get("customTitle")):
            rank = _MODEL_TITLE if note.get("titleSource") == "auto" else _HUMAN_TITLE
            session.learn(title=title, title_rank=rank)
        if record.get("subtype") == "parent_session" and (parent := word(note.get("parentSessionId"))):
            session.links.append(Link("subagent_of", parent))
        origin = word(mapping(record.get("forkedFrom")).get("sessionId"))
        if origin and not self._state.forked:
            self._state.forked = True
            session.links.append(Link("forked_from", origin))

    # --- messages among others ---
    def _in_context(self, session: SessionTally, record: Rec, message: Message) -> Message:
        if self._candidate.kind == "subagent":
            return self._in_subagent(session, message)
        for block in message.blocks:
            if block.call is not None and block.call.prompt:
                session.links.append(Link("spawned", "", block.call.call_id, _hint(block.call.prompt)))
        before = digest(word(record.get("parentUuid")))
        if message.starts_turn:
            self._state.turns = [*self._state.turns, before][-_TURNS:]
        elif record.get("type") == "system" and record.get("subtype") == "rewind" and before in self._state.turns:
            kept = self._state.turns.index(before)
            back = len(self._state.turns) - kept
            del self._state.turns[kept:]
            return replace(message, takes_back=back)
        return message

    def _in_subagent(self, session: SessionTally, message: Message) -> Message:
        """Link the subagent by its task, and join its records into responses: text and each call have records of their own."""
        state = self._state
        if message.starts_turn and not state.linked:
            state.linked = True
            task = next((block.text for block in message.blocks if block.field == "prompt"), "")
            session.links.append(Link("subagent_of", self._candidate.parent, hint=_hint(task) if task else 0))
        if message.origin != "model":
            state.response = ""
            return message
        state.response = state.response or message.provider_id
        return replace(message, provider_id=state.response)


def _hint(prompt: str) -> int:
    return fingerprint("prompt", prompt)
