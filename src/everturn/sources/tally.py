"""What one reading has found so far: messages and facts by session, problems, and a count of everything.

Shared by the formats. A reader opens the sessions it adds to, counts every record once, and hands all over as a `ReadResult`.
"""

from __future__ import annotations

from typing import Any

from everturn.model.conversation import Census, Link, Message, Problem, ReadResult, SessionFacts, SessionPart
from everturn.sources.foreign import word
from everturn.sources.jsonl import BLANK, REASONS


class SessionTally:
    """One session, as far as this reading adds to it."""

    __slots__ = ("_facts", "kind", "links", "messages", "native_id", "parent")

    def __init__(self, native_id: str, kind: str, parent: str) -> None:
        self.native_id, self.kind, self.parent = native_id, kind, parent
        self.messages: list[Message] = []
        self.links: list[Link] = []
        self._facts: dict[str, Any] = {}

    def learn(self, **facts: str | int) -> None:
        """Take facts (fields of `SessionFacts`); empty ones say nothing."""
        self._facts.update({name: value for name, value in facts.items() if value})

    def part(self) -> SessionPart | None:
        """What to hand on; None when there is nothing."""
        if not (self.messages or self.links or self._facts):
            return None
        facts: dict[str, Any] = {
            name: word(value) if isinstance(value, str) else value for name, value in self._facts.items()
        }
        return SessionPart(self.native_id, SessionFacts(self.kind, self.parent, **facts), self.messages, self.links)


class ReadTally:
    """The whole of it."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self._talks: dict[str, SessionTally] = {}
        self._census: dict[tuple[str, str, str], int] = {}

    def session(self, native_id: str, kind: str = "main", parent: str = "") -> SessionTally:
        """The session of that id, opened when this reading adds to it for the first time."""
        talk = self._talks.get(native_id)
        if talk is None:
            talk = self._talks[native_id] = SessionTally(native_id, kind, parent)
        return talk

    def count(self, kind: str, disposition: str, client: str = "") -> None:
        """Count one record."""
        key = kind, client, disposition
        self._census[key] = self._census.get(key, 0) + 1

    def trouble(self, trouble: str, start: int, size: int, is_record: bool = True, provisional: bool = False) -> None:
        """Note a trouble (one of `jsonl.REASONS`, or a blank line); one that is all there is of a record is counted."""
        if trouble == BLANK:
            self.count(f"({BLANK})", "known")
            return
        self.problems.append(Problem(trouble, REASONS[trouble], start, size, provisional))
        if is_record:
            self.count(f"({trouble})", "problem")

    def reading(self, consumed: int, lines: int | None = None, glued: int = 0) -> ReadResult:
        """Everything; where there are no lines, what was counted are the elements."""
        parts = [part for talk in self._talks.values() if (part := talk.part()) is not None]
        census = [Census(*key, n) for key, n in self._census.items()]
        return ReadResult(
            consumed, parts, self.problems, census, sum(self._census.values()) if lines is None else lines, glued
        )
