"""Reads a capture line by line: which session each record belongs to, and what records say together."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, fingerprint
from everturn.sources import SourceCandidate
from everturn.sources.foreign import digest, plain, state_of, word
from everturn.sources.linewise import Counted, LineReader, Rec, RecordPlace, add
from everturn.sources.stream_json.records import KNOWN, build, is_note
from everturn.sources.tally import SessionTally

_MOST_LINKED = 1000


class StreamReaderState(Struct):
    """What a later reader needs to go on."""

    session: str = ""
    client: str = ""
    said: str = ""  # what the model said last, in short
    index: int = 0
    linked: list[str] = []  # calls whose subagents are known
    open_line: bool = False


class StreamReader(LineReader[StreamReaderState]):
    """One capture: mostly one session, its subagents in between."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        super().__init__(state_of(state, StreamReaderState))
        self._state.session = self._state.session or found.native_id or found.path.stem

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        state = self._state
        state.session = word(record.get("session_id")) or state.session
        kind = word(record.get("type"))
        talk = self._talk(record)
        self._learn(talk, record, kind)
        message = build(record)
        if message is None:
            return plain(kind), "known", state.client
        message = self._placed(message, talk, kind)
        add(self._gathering, talk, replace(message, start=place.start, size=place.size))
        state.index += 1
        disposition = "unknown" if message.kind == "unknown" else "message"
        counted = plain(f"event/{record['event']}") if is_note(record) else plain(kind)
        return counted, disposition, state.client

    def _talk(self, record: Rec) -> SessionTally:
        """The session of a record: that of the call whose subagent it is of, or the main one."""
        state, call = self._state, word(record.get("parent_tool_use_id"))
        if not call or word(record.get("type")) in KNOWN:
            return self._gathering.session(state.session)
        name = f"{state.session}/{call}"
        talk = self._gathering.session(name, "subagent", state.session)
        if name not in state.linked:
            state.linked = [*state.linked[-_MOST_LINKED:], name]
            talk.links.append(Link("subagent_of", state.session))
            self._gathering.session(state.session).links.append(Link("spawned", name, call))
        return talk

    def _learn(self, talk: SessionTally, record: Rec, kind: str) -> None:
        state = self._state
        if kind == "system" and record.get("subtype") == "init":
            version = word(record.get("claude_code_version"))
            state.client = plain(version) if version else state.client
            talk.learn(workspace=word(record.get("cwd")), client=state.client)
        elif is_note(record) and isinstance(record.get("clientVersion"), dict):
            version = word(record["clientVersion"].get("version"))
            state.client = plain(version) if version else state.client
            talk.learn(client=state.client)

    def _placed(self, message: Message, talk: SessionTally, kind: str) -> Message:
        """The message with what only its place tells: its number, and whether its words were said before."""
        words = digest(*(block.text for block in message.blocks))
        if message.origin == "model" and any(block.field == "answer" for block in message.blocks):
            self._state.said = words
        elif kind == "result" and words == self._state.said:
            message = replace(message, blocks=tuple(replace(block, field="") for block in message.blocks))
        if message.fingerprint is None:
            prints = fingerprint(f"{talk.native_id}/{self._state.index}", f"{message.role}{words}")
            message = replace(message, fingerprint=prints)
        return message
