"""Reads the lines of one conversation, or of one of its branches."""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Reading
from everturn.sources import Found
from everturn.sources.claude_ai.message import build
from everturn.sources.foreign import word
from everturn.sources.linewise import Counted, Place, Rec, add, mapping, read, walker
from everturn.sources.tally import Gathering


class State(Struct):
    """What a later reader needs to go on."""

    model: str = ""  # where the conversation as a whole names one
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
            self._state.model = word(about.get("model"))
            title, summary = word(about.get("name")), word(about.get("summary"))
            talk.learn(title=title, title_rank=2 if title else 0, summary=summary)
        message = build(record)
        counted = _type(record)
        if message is None or (isinstance(about, dict) and found.parent):
            return counted, "known", ""
        if message.origin == "model" and not message.model:
            message = replace(message, model=self._state.model)
        add(self._gathering, talk, replace(message, start=place.start, size=place.size))
        return counted, "unknown" if message.kind == "unknown" else "message", ""


def _type(record: Rec) -> str:
    kind = next((key for key in ("conversation", "message") if key in record), "?")
    sender = word(mapping(record.get("message")).get("sender"))
    return f"message/{sender}" if sender in ("human", "assistant") else kind


def _unpacked(state: bytes) -> State:
    try:
        return msgspec.msgpack.decode(state, type=State) if state else State()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return State()
