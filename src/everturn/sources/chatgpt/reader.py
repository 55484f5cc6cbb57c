"""Reads the lines of one conversation, or of one of its branches."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.model.conversation import Message
from everturn.sources import Found
from everturn.sources.chatgpt.message import build
from everturn.sources.exported import ConversationReader, Dialect, State
from everturn.sources.foreign import word
from everturn.sources.linewise import Rec, mapping
from everturn.sources.tally import Talk


def reader(found: Found, state: bytes) -> ConversationReader:
    """A reader of one conversation."""
    return ConversationReader(Dialect(build, _type, _about, _placed), found, state)


def _about(about: Rec, talk: Talk, state: State) -> None:
    talk.learn(title=word(about.get("title")), title_rank=2 if about.get("title") else 0)


def _placed(message: Message, state: State) -> Message:
    """Nodes of the model in a row are one response: what it thought, what it called, what it said."""
    state.note = (state.note or message.provider_id) if message.origin == "model" else ""
    return replace(message, provider_id=state.note) if state.note else message


def _type(record: Rec) -> str:
    if isinstance(record.get("conversation"), dict):
        return "conversation"
    message = mapping(mapping(record.get("node")).get("message"))
    kind = word(mapping(message.get("content")).get("content_type"))
    role = word(mapping(message.get("author")).get("role"))
    return "node" if not message else f"node/{_plain(role)}/{_plain(kind)}"


def _plain(text: str) -> str:
    return text if len(text) <= 40 and text.replace("_", "").isalnum() and text.isascii() else "?"
