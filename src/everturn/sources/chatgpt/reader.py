"""Reads the lines of one conversation, or of one of its branches."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.model.conversation import Message
from everturn.sources import SourceCandidate
from everturn.sources.chatgpt.message import build
from everturn.sources.exported import Dialect, ExportReader, ExportReaderState
from everturn.sources.foreign import word
from everturn.sources.linewise import Rec, mapping
from everturn.sources.tally import SessionTally


def reader(found: SourceCandidate, state: bytes) -> ExportReader:
    """A reader of one conversation."""
    return ExportReader(Dialect(build, _type, _learn_conversation, _join_response), found, state)


def _learn_conversation(about: Rec, talk: SessionTally, state: ExportReaderState) -> None:
    talk.learn(title=word(about.get("title")), title_rank=2 if about.get("title") else 0)


def _join_response(message: Message, state: ExportReaderState) -> Message:
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
