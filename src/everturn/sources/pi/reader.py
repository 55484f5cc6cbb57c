"""Reads a session piece by piece."""

from __future__ import annotations

from msgspec import Struct

from everturn.model.conversation import Link
from everturn.sources import SourceCandidate
from everturn.sources.foreign import count, plain, state_of, word
from everturn.sources.linewise import Counted, LineReader, Rec, RecordPlace, add
from everturn.sources.pi.entries import build, entry_kind
from everturn.sources.pi.find import session_in

_HUMAN_TITLE = 3


class PiReaderState(Struct, array_like=True):
    """Everything a later reader needs."""

    open_line: bool = False
    version: str = ""  # of the format: the client does not say its own


class PiReader(LineReader[PiReaderState]):
    """One session."""

    def __init__(self, found: SourceCandidate, state: bytes) -> None:
        super().__init__(state_of(state, PiReaderState))
        self._name = found.native_id or found.path.stem

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        kind = record.get("type")
        talk = self._gathering.session(self._name)
        if kind == "session":
            self._state.version = f"v{count(record.get('version')) or 1}"
            talk.learn(workspace=word(record.get("cwd")))
            origin = session_in(word(record.get("parentSession")) or word(record.get("branchedFrom")))
            if origin:
                talk.links.append(Link("forked_from", origin))
        elif kind == "session_info" and word(record.get("name")):
            talk.learn(title=word(record.get("name")), title_rank=_HUMAN_TITLE)
        message = build(record, place)
        if message is not None:
            add(self._gathering, talk, message)
        name, known = entry_kind(record)
        return plain(name), ("message" if message is not None else "known") if known else "unknown", self._state.version
