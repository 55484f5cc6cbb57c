"""Hits made into answers: the session, the message, a line of its text with the match marked, the turns beside it.

Secrets are taken out of the whole text first and the snippet is cut afterwards: a secret cut in half would no longer be
known as one. Nothing here is more than data: words of a transcript, on one line, safe to print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.excerpt import excerpt, excerpt_at, find_phrases
from everturn.derive.printable import one_line
from everturn.model.archive import MessageRow, Session, SessionText, Turn
from everturn.model.conversation import Message
from everturn.recall.reading import Records, Sources
from everturn.store import IndexHit, Store

if TYPE_CHECKING:
    from everturn.recall.patterns import Effort, LinearPattern

Clean = Callable[[str], str]
HitSpans = list[tuple[int, int]]

#: Words of what was said stand above words of what was given in, when both match.
BEST_FIRST = ("prompt", "answer", "summary", "thinking", "tool_input", "tool_output", "meta")
_OPEN = 20  # sessions whose records are at hand: each holds on to the last one, unless that is very long
_BESIDE = 120  # characters of a turn beside a match
_LOOKED_AT = 5  # messages of such a turn


class NeighbourTurn(Struct, frozen=True):
    """The first words of a turn before or after a match."""

    turn: int
    role: str
    text: str


class SearchHit(Struct, frozen=True):
    """A message that matches. `row` is None when the session's own title or summary does."""

    session: Session
    text: SessionText
    row: MessageRow | None
    field: str  # where it matches: of `words.FIELDS`, or `title`
    snippet: str  # on one line, safe to print
    spans: HitSpans  # of the matches in it
    score: float
    before: tuple[NeighbourTurn, ...] = ()  # turns before and after it, when they were asked for
    after: tuple[NeighbourTurn, ...] = ()


class HitOptions(Struct, frozen=True):
    """What an answer is made of, and how it leaves."""

    fields: tuple[str, ...]
    clean: Clean
    pattern: LinearPattern | None = None


def hit_texts(message: Message, fields: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The texts of a message by field; all of them when no fields are given."""
    for block in message.blocks:
        if block.text and (not fields or block.field in fields):
            yield block.field, block.text


class HitBuilder:
    """Makes answers of hits; each session is looked up once."""

    def __init__(self, store: Store, sources: Sources, wanted: HitOptions) -> None:
        self._store, self._sources, self._wanted = store, sources, wanted
        self._fields = [name for name in BEST_FIRST if not wanted.fields or name in wanted.fields]
        self._sessions: dict[int, tuple[Session, SessionText]] = {}
        self._open: dict[int, Records] = {}
        self._effort: Effort | None = None
        self.words: list[str] = []  # what is marked
        self.held: list[set[int]] = []  # for each message shown, the numbers of the words that stand in it

    def session(self, number: int) -> tuple[Session, SessionText]:
        """A session with its words."""
        if number not in self._sessions:
            self._sessions[number] = self._store.session(number)
        return self._sessions[number]

    def texts(self, hit: IndexHit, row: MessageRow | None) -> list[tuple[str, str]]:
        """The texts of what was hit by field, those first that are worth most."""
        session, text = self.session(hit.session)
        if row is None:
            return [(name, words) for name, words in (("title", text.title), ("summary", text.summary)) if words]
        by_field: dict[str, list[str]] = {}
        for field, words in hit_texts(self._records(session).message(row), self._wanted.fields):
            by_field.setdefault(field, []).append(words)
        return [(name, "\n".join(by_field[name])) for name in self._fields if name in by_field]

    def found(self, hit: IndexHit, row: MessageRow | None) -> SearchHit:
        """The answer for a hit."""
        session, text = self.session(hit.session)
        return SearchHit(session, text, row, *self._best_excerpt(self.texts(hit, row)), hit.score)

    def _records(self, session: Session) -> Records:
        if session.id not in self._open:
            if len(self._open) >= _OPEN:
                self._open.clear()
            self._open[session.id] = Records(self._store, self._sources, session, until=0)
        return self._open[session.id]

    def _best_excerpt(self, found: list[tuple[str, str]]) -> tuple[str, str, HitSpans]:
        """Of the texts the one where most of the words stand together; of equal ones the first."""
        cleaned = [(name, self._wanted.clean(words)) for name, words in found]
        words = self.words
        if len(words) > 1:
            self.held.append({number for _, text in cleaned for number in find_phrases(text, words)})
        made = [(name, *self._text_excerpt(text)) for name, text in cleaned]
        return max(made, key=lambda one: len(one[2]), default=("", "", []))

    def _text_excerpt(self, text: str) -> tuple[str, HitSpans]:
        pattern = self._wanted.pattern
        if pattern is None:
            return excerpt(text, self.words)
        from everturn.recall.patterns import EFFORT, Effort

        # Work of its own: when looking for matches took all there was, those that were found are shown nevertheless.
        self._effort = self._effort or Effort(EFFORT // 4)
        line = next(pattern.search_lines(text, self._effort), None)
        spans = [(line.start + start, line.start + end) for start, end in line.spans] if line else []
        return excerpt_at(text, spans) if spans else excerpt(text, self.words)


# the turns beside it --------------------------------------------------------------------------------------------------
def with_neighbours(store: Store, sources: Sources, found: SearchHit, near: int, clean: Clean) -> SearchHit:
    """The same with the first words of so many turns before and after it."""
    if found.row is None:
        return found
    at = found.row.turn
    turns = store.turns(found.session.id, max(0, at - near), at + near)
    told = [
        one for turn in turns if turn.idx != at and (one := _neighbour_turn(store, sources, found.session, turn, clean))
    ]
    before, after = [one for one in told if one.turn < at], [one for one in told if one.turn > at]
    return replace(found, before=tuple(before), after=tuple(after))


def _neighbour_turn(store: Store, sources: Sources, session: Session, turn: Turn, clean: Clean) -> NeighbourTurn | None:
    """What a turn begins with, as people know it: what was typed, not what the client put in before."""
    rows = list(store.messages(session.id, turn.first_seq, min(turn.last_seq, turn.first_seq + _LOOKED_AT)))
    rows.sort(key=lambda row: (row.origin in ("injected", "system"), row.seq))
    records = Records(store, sources, session, until=0)
    for row in rows:
        for _, words in hit_texts(records.message(row), ()):
            return NeighbourTurn(turn.idx, row.role, one_line(clean(words), _BESIDE))
    return None
