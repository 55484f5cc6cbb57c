"""Reads the lines of one conversation of a chat service's export, or of one of its branches: see `exports`.

Shared by the formats that are such exports. A format says how a line becomes a message and what the first line tells of the
conversation; damage, links to the conversation a branch left, and the count of everything are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from everturn.model.conversation import Link, Message
from everturn.sources import SourceCandidate
from everturn.sources.foreign import state_of
from everturn.sources.linewise import Counted, LineReader, Rec, RecordPlace, add
from everturn.sources.tally import SessionTally


class ExportReaderState(Struct):
    """What a later reader needs to go on."""

    note: str = ""  # what the format remembers from one message to the next
    linked: bool = False
    open_line: bool = False


class Dialect(NamedTuple):
    """What is a format's own."""

    build: Callable[[Rec], Message | None]  # the message of a line
    counted: Callable[[Rec], str]  # its type, fit to be counted
    about: Callable[[Rec, SessionTally, ExportReaderState], None]  # takes what is said of the conversation
    placed: Callable[[Message, ExportReaderState], Message]  # the message, with what those before it tell


class ExportReader(LineReader[ExportReaderState]):
    """One conversation."""

    def __init__(self, dialect: Dialect, found: SourceCandidate, state: bytes) -> None:
        self._dialect = dialect
        super().__init__(state_of(state, ExportReaderState))
        self._found = found

    def _take(self, record: Rec, place: RecordPlace) -> Counted:
        if isinstance(record.get("damaged"), str):
            self._gathering.trouble("invalid_json", place.start, place.size, is_record=False)
            return "(damaged)", "problem", ""
        talk = self._talk()
        about = record.get("conversation")
        if isinstance(about, dict):
            self._dialect.about(about, talk, self._state)
        message = self._dialect.build(record)
        counted = self._dialect.counted(record)
        if message is None or (isinstance(about, dict) and self._found.parent):
            return counted, "known", ""
        message = self._dialect.placed(message, self._state)
        add(self._gathering, talk, replace(message, start=place.start, size=place.size))
        return counted, "unknown" if message.kind == "unknown" else "message", ""

    def _talk(self) -> SessionTally:
        found = self._found
        talk = self._gathering.session(found.native_id or found.path.stem, found.kind, found.parent)
        if found.parent and not self._state.linked:
            self._state.linked = True
            talk.links.append(Link("forked_from", found.parent))
        return talk
