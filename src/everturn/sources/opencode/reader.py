"""Reads a conversation piece by piece, whatever it is kept as: lines, a JSON document, or a rendered transcript.

Which of them is seen from the first bytes. Lines and documents give the same messages; a rendered transcript has no ids
and no times, so its messages are known by where they stand.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, ReadResult, fingerprint
from everturn.sources import SourceCandidate
from everturn.sources.document import Damage, follow_keys
from everturn.sources.foreign import plain, word
from everturn.sources.linewise import Counted, Rec, RecordPlace, add, mapping, read, walker
from everturn.sources.opencode.calls import child_of
from everturn.sources.opencode.message import OpencodeMessage, failure, mark, unknown
from everturn.sources.opencode.records import info_of, message_of, session_of
from everturn.sources.opencode.shapes import shape_of
from everturn.sources.tally import ReadTally, SessionTally
from everturn.sources.wholefile import DocumentItem, DocumentWalk, decode_item, settle

#: Titles that nobody gave.
_UNTITLED = ("New session - ", "Child session - ")


class OpencodeReaderState(Struct, array_like=True):
    """What a reader remembers between pieces."""

    shape: str = ""
    open_line: bool = False
    stage: str = ""  # of the walk through a document
    native_id: str = ""
    parent: str = ""
    client: str = ""
    placed: bool = False  # the working folder is known
    linked: bool = False  # to the session it hangs on
    n: int = 0  # messages of a rendered transcript so far


class OpencodeReader:
    """See `sources.Reader`."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        self._found = found
        self._state = _unpack_state(state) or OpencodeReaderState(parent=found.parent)
        self._gathering = ReadTally()
        self._lines = walker(self._state.open_line)
        self._data, self._base = b"", 0

    def feed(self, data: bytes, base: int, last: bool) -> ReadResult:
        """See `sources.Reader`."""
        gathering = self._gathering = ReadTally()
        self._data, self._base = data, base
        shape = self._state.shape = self._state.shape or shape_of(data)
        if shape == "lines":
            return read(gathering, self._lines, data, base, last, self._take)
        if shape == "document":
            return self._document(data, base, last)
        if shape == "text" and last:
            return self._text(data, base)
        if last and data.strip():
            gathering.trouble("torn_tail", base, len(data), is_record=False, provisional=True)
        return gathering.reading(0)

    def state(self) -> bytes:
        """See `sources.Reader`."""
        self._state.open_line = self._lines.open_line
        return msgspec.msgpack.encode(self._state)

    # the three shapes -------------------------------------------------------------------------------------------------
    def _document(self, data: bytes, base: int, last: bool) -> ReadResult:
        walk, gathering = DocumentWalk("messages", self._state.stage), self._gathering
        for item in walk.split(data, base, last):
            gathering.count(*self._item(item))
        settle(walk, gathering)
        self._state.stage = walk.stage
        return gathering.reading(walk.consumed)

    def _item(self, item: DocumentItem) -> Counted:
        value, trouble = decode_item(item.raw)
        if trouble:
            self._gathering.trouble(trouble, item.start, len(item.raw), is_record=False)
        place = RecordPlace(item.start, len(item.raw))
        if item.key == "info" and isinstance(value, dict):
            return self._learn(value)
        if not item.key and isinstance(value, dict):
            return self._take(value, place)
        if trouble and value is None:
            return f"({trouble})", "problem", ""
        self._add(unknown(value), place)
        return "?", "unknown", self._state.client

    def _text(self, data: bytes, base: int) -> ReadResult:
        from everturn.sources.opencode.rendered import read_text

        self._state.native_id = self._state.native_id or self._found.native_id or self._found.path.stem
        talk = self._gathering.session(self._state.native_id, self._found.kind, self._found.parent)
        self._state.n = read_text(self._gathering, talk, data, base, self._state.n)
        return self._gathering.reading(len(data))

    # records ----------------------------------------------------------------------------------------------------------
    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        about = session_of(record)
        if about:
            return self._learn(about)
        built = message_of(record)
        if built is None:
            return "file" if "file" in record else "switch", "known", self._state.client
        self._say(built, record, place)
        return plain(built.type), "message" if built.known else "unknown", self._state.client

    def _say(self, built: OpencodeMessage, record: Rec, place: RecordPlace) -> None:
        info = info_of(record)
        self._settle(word(info.get("sessionID")))
        message, state = built.message, self._state
        folder = word(mapping(info.get("path")).get("cwd"))
        if folder and not state.placed:
            self._talk().learn(workspace=folder)
            state.placed = True
        if state.parent and not state.linked:
            self._talk().learn(agent_name=word(info.get("agent")))
        self._add(self._helper_message(message, info), place)
        if isinstance(info.get("error"), dict) and "info" in record and "parts" in record:
            self._failed(info, place)

    def _failed(self, info: Rec, place: RecordPlace) -> None:
        """An export says inside the message how it ended."""
        start = place.start - self._base
        try:
            found = follow_keys(self._data[start : start + place.size], 0, "info", "error")
        except Damage:
            return
        if found is not None:
            message = self._helper_message(failure(info["error"], info), info)
            self._add(message, RecordPlace(place.start + found.start, found.size))

    def _helper_message(self, message: Message, info: Rec) -> Message:
        """In a session that hangs on another the agent there speaks. Several may ask the same thing at the same time."""
        if not self._state.parent or not message.native_id:
            return message
        origin = "agent" if message.origin == "human" else message.origin
        return replace(message, origin=origin, fingerprint=mark(message.native_id, info, message.blocks))

    def _add(self, message: Message, place: RecordPlace) -> None:
        talk, state = self._talk(), self._state
        message = replace(message, start=place.start, size=place.size)
        add(self._gathering, talk, message)
        if state.parent and not state.linked:
            state.linked = True
            prompt = next((block.text for block in message.blocks if block.field == "prompt"), "")
            hint = fingerprint("prompt", prompt) if prompt and message.starts_turn else 0
            talk.links.append(Link("subagent_of", state.parent, hint=hint))
        talk.links += _spawn_links(message)

    # the session ------------------------------------------------------------------------------------------------------
    def _learn(self, about: Rec) -> Counted:
        state = self._state
        self._settle(word(about.get("id")))
        state.parent = word(about.get("parentID")) or word(about.get("parent_id")) or state.parent
        state.client = plain(about["version"]) if about.get("version") else state.client
        title, folder = word(about.get("title")), word(about.get("directory"))
        state.placed = state.placed or bool(folder)
        talk = self._talk()
        talk.learn(client=state.client, workspace=folder)
        if title and not title.startswith(_UNTITLED):
            talk.learn(title=title, title_rank=1)
        return "session", "known", state.client

    def _settle(self, native_id: str) -> None:
        """Decide whose conversation this is: what it says itself counts most."""
        state, found = self._state, self._found
        state.native_id = state.native_id or native_id or found.native_id or found.path.stem

    def _talk(self) -> SessionTally:
        self._settle("")
        parent, kind = self._state.parent, self._found.kind
        kind = "subagent" if parent else kind if kind not in ("container", "bundle") else "main"
        talk = self._gathering.session(self._state.native_id, kind, parent)
        talk.kind, talk.parent = kind, parent  # learnt after it had been opened, where the file begins in the middle
        return talk


def _spawn_links(message: Message) -> list[Link]:
    """The sessions that calls in this message started: by id, or by what they were asked."""
    found = []
    for block in message.blocks:
        if block.call is not None and block.call.kind == "task":
            child, prompt = child_of(mapping(block.data)), block.call.prompt
            if child or prompt:
                hint = 0 if child else fingerprint("prompt", prompt)
                found.append(Link("spawned", child, block.call.call_id, hint))
    return found


def _unpack_state(state: bytes) -> OpencodeReaderState | None:
    try:
        return msgspec.msgpack.decode(state, type=OpencodeReaderState) if state else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
