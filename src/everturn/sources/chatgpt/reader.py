"""Reads the lines of one conversation, or of one of its branches."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, Reading
from everturn.sources import Found
from everturn.sources.chatgpt.message import build
from everturn.sources.foreign import word
from everturn.sources.linewise import Counted, Place, Rec, add, mapping, read, walker
from everturn.sources.tally import Gathering


class State(Struct):
    """What a later reader needs to go on."""

    response: str = ""  # the first node of the response that is going on; "" when the model is not speaking
    linked: bool = False
    open_line: bool = False


class ConversationReader:
    """One conversation."""

    def __init__(self, found: Found, state: bytes) -> None:
        self._state = _unpacked(state)
        self._found = found
        self._walk = walker(self._state.open_line)
        self._gathering = Gathering()

    def feed(self, data: bytes, base: int, last: bool) -> Reading:
        """See `sources.Reader`."""
        self._gathering = Gathering()
        return read(self._gathering, self._walk, data, base, last, self._take)

    def state(self) -> bytes:
        """See `sources.Reader`."""
        self._state.open_line = self._walk.open_line
        return msgspec.msgpack.encode(self._state)

    def _take(self, record: Rec, place: Place) -> Counted:
        found = self._found
        if isinstance(record.get("damaged"), str):
            self._gathering.trouble("invalid_json", place.start, place.size, is_record=False)
            return "(damaged)", "problem", ""
        talk = self._gathering.session(found.native_id or found.path.stem, found.kind, found.parent)
        if found.parent and not self._state.linked:
            self._state.linked = True
            talk.links.append(Link("forked_from", found.parent))
        about = record.get("conversation")
        if isinstance(about, dict):
            talk.learn(title=word(about.get("title")), title_rank=2 if about.get("title") else 0)
        message = build(record)
        counted = _type(record)
        if message is None or (isinstance(about, dict) and found.parent):
            return counted, "known", ""
        add(self._gathering, talk, replace(self._placed(message), start=place.start, size=place.size))
        return counted, "unknown" if message.kind == "unknown" else "message", ""

    def _placed(self, message: Message) -> Message:
        """Nodes of the model in a row are one response: what it thought, what it called, what it said."""
        state = self._state
        state.response = (state.response or message.provider_id) if message.origin == "model" else ""
        return replace(message, provider_id=state.response) if state.response else message


def _type(record: Rec) -> str:
    if isinstance(record.get("conversation"), dict):
        return "conversation"
    message = mapping(mapping(record.get("node")).get("message"))
    kind = word(mapping(message.get("content")).get("content_type"))
    role = word(mapping(message.get("author")).get("role"))
    return "node" if not message else f"node/{_plain(role)}/{_plain(kind)}"


def _plain(text: str) -> str:
    return text if len(text) <= 40 and text.replace("_", "").isalnum() and text.isascii() else "?"


def _unpacked(state: bytes) -> State:
    try:
        return msgspec.msgpack.decode(state, type=State) if state else State()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return State()
