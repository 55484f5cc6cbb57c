"""Reads a saved session: sections together, each thread of it a session of its own.

SpecStory writes the file anew each time, mostly only longer: what came later is read on its own.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, ReadResult, fingerprint
from everturn.sources import SourceCandidate
from everturn.sources.foreign import digest, plain, state_of
from everturn.sources.passages import Passages, text_of
from everturn.sources.specstory.find import FOLDER
from everturn.sources.specstory.message import CONTEXT, build, header
from everturn.sources.specstory.sections import ALIKE, SpecstoryLineState, SpecstoryMark, mark_of, opens
from everturn.sources.tally import ReadTally, SessionTally


class SpecstoryReaderState(Struct):
    """What a later reader needs to go on."""

    known: SpecstoryLineState = msgspec.field(default_factory=SpecstoryLineState)
    native_id: str = ""
    client: str = ""
    role: str = ""  # of the section before
    time: str = ""
    command: bool = False  # the section before was a slash command
    chain: int = 0  # threads so far
    in_chain: bool = False
    index: int = 0
    answers: int = 1
    answered: bool = False  # the response called tools: what the model says next is another one
    model: str = ""


class SpecstoryReader:
    """One file."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        self._state = state_of(state, SpecstoryReaderState)
        self._state.native_id = self._state.native_id or found.native_id or found.path.stem
        self._passages = Passages(opens, self._state.known, ALIKE)
        parts = found.path.parts
        inside = FOLDER in parts and found.path.is_absolute()
        self._workspace = str(found.path.parents[len(parts) - parts.index(FOLDER) - 1]) if inside else ""

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        gathering, passages = ReadTally(), self._passages
        for start, raw in passages.split(data, base, last):
            self._section(gathering, start, raw)
        self._state.known = passages.state
        return gathering.reading(passages.consumed)

    def state(self) -> bytes:
        """See `sources.Reader`."""
        return msgspec.msgpack.encode(self._state)

    def _section(self, gathering: ReadTally, start: int, raw: bytes) -> None:
        state = self._state
        text, is_fine = text_of(raw)
        if not is_fine:
            gathering.trouble("invalid_utf8", start, len(raw), is_record=False)
        mark = mark_of(text.partition("\n")[0])
        message = build(mark, text)
        if message.kind == "text" and message.role == "assistant" and not message.blocks and not mark.role:
            return  # a rule with nothing behind it
        if message.kind == "notice":
            self._begin(gathering, text)
        talk = self._thread(gathering, mark)
        message = self._placed(mark, message)
        print_ = fingerprint(f"{talk.native_id}/{mark.time or state.index}", _digest(message))
        talk.messages.append(replace(message, start=start, size=len(raw), fingerprint=print_))
        state.index += 1
        gathering.count(mark.role or ("header" if message.kind == "notice" else "item"), "message", state.client)

    def _begin(self, gathering: ReadTally, text: str) -> None:
        found = header(text)
        self._state.client = plain(found.client) if found.client else ""
        gathering.session(self._state.native_id).learn(
            workspace=self._workspace, client=self._state.client, title=found.title, title_rank=2 if found.title else 0,
            agent_name=found.agent,
        )  # fmt: skip

    def _thread(self, gathering: ReadTally, mark: SpecstoryMark) -> SessionTally:
        """The session of a section: each run of sections of another thread is one."""
        state = self._state
        if not mark.sidechain and (mark.role or not state.in_chain):
            state.in_chain = False
            return gathering.session(state.native_id)
        begins = not state.in_chain or (mark.role == "User") or (bool(mark.role) and not mark.model)
        if begins:
            state.chain += 1
            state.in_chain = True
        name = f"{state.native_id}/sidechain-{state.chain}"
        talk = gathering.session(name, "sidechain", state.native_id)
        if begins:
            talk.links.append(Link("subagent_of", state.native_id))
            gathering.session(state.native_id).links.append(Link("spawned", name))
        return talk

    def _placed(self, mark: SpecstoryMark, message: Message) -> Message:
        """The message with what only its place tells: which response it is of, and what a command was replaced by."""
        state = self._state
        if not mark.role and message.kind != "notice" and state.role == "User":  # the rest of a prompt
            message = replace(message, role="user", origin="human", model="")
        if message.origin == "model":
            if state.role == "User" or state.answered:
                state.answers += 1
            state.answered = any(block.call is not None for block in message.blocks)
            state.model = mark.model or state.model
            provider_id = f"{state.native_id}/{state.answers}"
            message = replace(message, provider_id=provider_id, model=message.model or state.model)
        elif message.kind == "text" and state.command and mark.time and mark.time == state.time:
            blocks = tuple(replace(block, field=CONTEXT.field) for block in message.blocks)
            message = replace(message, origin=CONTEXT.origin, kind=CONTEXT.kind, starts_turn=False, blocks=blocks)
        if mark.role:
            state.role = "User" if message.role == "user" else mark.role
            state.time, state.command = mark.time, message.kind == "command"
        return message


def _digest(message: Message) -> str:
    return digest(message.role, *(block.text for block in message.blocks))
