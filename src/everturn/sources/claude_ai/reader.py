"""Reads the lines of one conversation, or of one of its branches."""

from __future__ import annotations

from msgspec.structs import replace

from everturn.model.conversation import Message
from everturn.sources import SourceCandidate
from everturn.sources.claude_ai.message import build
from everturn.sources.exported import Dialect, ExportReader, ExportReaderState
from everturn.sources.foreign import word
from everturn.sources.linewise import Rec, mapping
from everturn.sources.tally import SessionTally


def reader(found: SourceCandidate, state: bytes) -> ExportReader:
    """A reader of one conversation."""
    return ExportReader(Dialect(build, _type, _learn_conversation, _fill_model), found, state)


def _learn_conversation(about: Rec, talk: SessionTally, state: ExportReaderState) -> None:
    title, summary = word(about.get("name")), word(about.get("summary"))
    talk.learn(title=title, title_rank=2 if title else 0, summary=summary)
    state.note = word(about.get("model"))


def _fill_model(message: Message, state: ExportReaderState) -> Message:
    """Where the conversation as a whole names a model, it is that of every answer."""
    return replace(message, model=state.note) if message.origin == "model" and not message.model else message


def _type(record: Rec) -> str:
    kind = next((key for key in ("conversation", "message") if key in record), "?")
    sender = word(mapping(record.get("message")).get("sender"))
    return f"message/{sender}" if sender in ("human", "assistant") else kind
