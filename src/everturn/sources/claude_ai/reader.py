"""Reads the lines of one conversation, or of one of its branches."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.model.conversation import Message
from everturn.sources import Found
from everturn.sources.claude_ai.message import build
from everturn.sources.exported import ConversationReader, Dialect, State
from everturn.sources.foreign import word
from everturn.sources.linewise import Rec, mapping
from everturn.sources.tally import Talk


def reader(found: Found, state: bytes) -> ConversationReader:
    """A reader of one conversation."""
    return ConversationReader(Dialect(build, _type, _about, _placed), found, state)


def _about(about: Rec, talk: Talk, state: State) -> None:
    title, summary = word(about.get("name")), word(about.get("summary"))
    talk.learn(title=title, title_rank=2 if title else 0, summary=summary)
    state.note = word(about.get("model"))


def _placed(message: Message, state: State) -> Message:
    """Where the conversation as a whole names a model, it is that of every answer."""
    return replace(message, model=state.note) if message.origin == "model" and not message.model else message


def _type(record: Rec) -> str:
    kind = next((key for key in ("conversation", "message") if key in record), "?")
    sender = word(mapping(record.get("message")).get("sender"))
    return f"message/{sender}" if sender in ("human", "assistant") else kind
