"""Reads a journal piece by piece. What a later reader needs is a handful of bytes, however long the journal is."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message, fingerprint
from everturn.sources import SourceCandidate
from everturn.sources.foreign import count, plain, state_of, word
from everturn.sources.journal.records import build, is_known
from everturn.sources.linewise import Counted, LineReader, Rec, RecordPlace, add, listing
from everturn.sources.tally import SessionTally

_HUMAN_TITLE = 3


class JournalReaderState(Struct, array_like=True):
    """Everything a later reader needs."""

    open_line: bool = False
    client: str = ""


class JournalReader(LineReader[JournalReaderState]):
    """One session."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        super().__init__(state_of(state, JournalReaderState))
        self._name = found.native_id or found.path.stem

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        kind = word(record.get("type"))
        talk = self._gathering.session(self._name)
        if kind == "session":
            self._begin(talk, record)
        elif kind == "note" and word(record.get("kind")) == "title":
            talk.learn(title=word(record.get("text")), title_rank=_HUMAN_TITLE)
        message = build(record, place)
        if message is not None:
            add(self._gathering, talk, self._name_message(message, record))
        known = is_known(kind)
        disposition = ("message" if message is not None else "known") if known else "unknown"
        return plain(kind), disposition, self._state.client

    def _name_message(self, message: Message, record: Rec) -> Message:
        """A record is known by its number; one that was copied from another session says which it was there."""
        number = count(record.get("n"))
        name = message.native_id or (f"{self._name}/{number}" if number is not None else "")
        return replace(message, fingerprint=fingerprint(name, str(message.at)), native_id=name) if name else message

    def _begin(self, talk: SessionTally, record: Rec) -> None:
        client = word(record.get("client"))
        self._state.client = plain(client) if client else ""
        talk.learn(workspace=word(record.get("workspace")), client=self._state.client, title=word(record.get("title")))
        parent, relation = word(record.get("parent")), word(record.get("relation"))
        if parent:
            talk.links.append(Link("forked_from" if relation == "forked_from" else "continues", parent))
        talk.links += [Link("continues", name) for one in listing(record.get("also")) if (name := word(one))]
