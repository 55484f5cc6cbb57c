"""The full-text index as the shared code sees it: put text in, take it out, count words, look at the entries that match.

An entry is a message with text of its own, or what a session says of itself (title and summary, seq -1). Which sessions
and messages a search is about is the same for every engine (`scope`, `searching`); an engine only matches words and says
how much of each it saw. Every term is stemmed by the engine, the same way for text and question.

The stems that FTS5's porter tokenizer makes, for those who need them outside of an FTS5 table.

The archive in PostgreSQL holds the same stems as the one in SQLite, because the same code makes them. It works on what
`derive.analysis` has folded: runs of letters and digits. Capitals make no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import apsw
from msgspec import Struct

from everturn.model.archive import IndexRow
from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexEntry

if TYPE_CHECKING:
    from collections.abc import Callable


Phrase = tuple[str, ...]

#: How much a word counts, by the field it stands in. Chosen with the other constants of ranking; see retrieval/ranking.py.
WEIGHTS = {
    "prompt": 2.4,
    "summary": 3.0,
    "answer": 2.0,
    "tool_input": 1.2,
    "thinking": 1.2,
    "tool_output": 0.8,
    "meta": 0.5,
}
BY_FIELD = tuple(WEIGHTS[name] for name in FIELDS)

#: An entry of this many terms is neither short nor long: what stands in a longer one counts less, by this share.
USUAL_LENGTH = 80
LENGTH_MATTERS = 0.6
#: Seen so often, counted by field, half of the most is reached.
ENOUGH = 1.6

#: The pieces of compound names are indexed but for these fields: two thirds of all text, and the least asked for.
WITHOUT_PIECES = ("tool_output", "meta")
LAST_SEQ = 0xFFFFFE  # a message beyond this is kept, but not indexed


class Range(NamedTuple):
    """Entries of one session, both ends included."""

    session: int
    first: int = -1
    last: int = LAST_SEQ


class IndexLook(Struct, frozen=True):
    """Which entries to look at, and for what. The newest are looked at first: by session, then by seq, both downwards."""

    groups: tuple[tuple[Phrase, ...], ...]  # each must match, by any one of its phrases
    phrases: tuple[Phrase, ...]  # what is reported of an entry
    without: tuple[Phrase, ...] = ()
    fields: tuple[str, ...] = ()
    ranges: tuple[Range, ...] | None = None  # only here
    sessions: tuple[str, tuple[Any, ...]] | None = None  # only in these: a SELECT of ids, and its parameters
    messages: tuple[str, tuple[Any, ...]] | None = None  # only where this holds for the message `m`
    first_in: tuple[str, ...] = ()  # the first group only in these fields
    from_session: int = 0  # only in sessions with this id or a higher one
    walk: int = -1  # entries that are looked at, at most
    most: int = -1  # entries that are given, at most: those that hold most, or where that costs too much, the newest
    worth: tuple[float, ...] = ()  # of each of `phrases`, to tell which hold most


class IndexMatches(NamedTuple):
    """The entries that match, each once."""

    entries: list[IndexEntry]
    walked: bool  # every entry that matches was looked at
    complete: bool  # and is given


class Index(Protocol):
    """The entries of one archive."""

    #: Whether `look` can walk through more entries than are wanted and give the best; else it gives the newest.
    chooses: bool

    def add(self, session: int, rows: Sequence[IndexRow]) -> None:
        """Enter the text of messages that have no entry yet."""

    def add_session(self, session: int, text: str) -> None:
        """Replace the session's own entry (title and summary, field `summary`); without text there is none."""

    def remove(self, session: int, seqs: Sequence[int]) -> None:
        """Take entries of messages out; those that are not there do not matter."""

    def remove_session(self, session: int) -> None:
        """Take out every entry of a session, its own one included."""

    def total(self) -> int:
        """How many entries there are, about."""

    def estimate(self, phrase: Phrase, fields: Sequence[str], sample: int, since: int, newest: int) -> float:
        """How many entries hold a phrase, looking at no more than `sample` of them.

        Only sessions from `since` on are looked at; of those not looked at, up to session `newest`, as many hold it.
        """

    def look(self, looking: IndexLook) -> IndexMatches:
        """What matches, within the bounds."""

    def opened(self, beginning: str) -> list[str]:
        """The words to look for, some of them ending in `*`, so that every term with this beginning is found, and no other."""

    def known(self, words: Sequence[str], most: int) -> dict[str, int]:
        """Those of the words that stand in some entry, in how many, counted up to `most`."""

    def vocabulary(self, beginning: str, most: int) -> list[str]:
        """Terms with this beginning, as indexed."""


def rareness(count: float, total: int) -> float:
    """How much a word says that stands in `count` of `total` entries."""
    return log(1 + (max(total - count, 0) + 0.5) / (count + 0.5))


def length_factor(length: int) -> float:
    """By how much what stands in an entry of this length is divided."""
    return 1 - LENGTH_MATTERS + LENGTH_MATTERS * length / USUAL_LENGTH


def phrase_share(seen: float, factor: float, terms: int) -> float:
    """How much of a phrase of so many terms an entry holds, from how often it was seen there, counted by field.

    A word may stand in a long text by chance, two side by side hardly, more of them never: then length says nothing.
    """
    if terms == 1:
        seen /= factor
    elif terms == 2:
        seen /= sqrt(factor)
    return seen / (seen + ENOUGH)


#: How every index here cuts text into terms.
TOKENIZER = ("porter", "unicode61", "remove_diacritics", "0")


def stem_words(folded: str) -> list[str]:
    """The stems of the terms of a folded text, in order."""
    return _tokenize()(folded.encode("utf-8", "replace"))


def stem_word(term: str) -> str:
    """Of one term; what is no term stays as it is."""
    found = stem_words(term)
    return found[0] if len(found) == 1 else term


@cache
def _tokenize() -> Callable[[bytes], list[str]]:
    name, *options = TOKENIZER
    connection = apsw.Connection(":memory:")
    tokenizer = connection.fts5_tokenizer(name, options)

    def tokenize(text: bytes) -> list[str]:
        found = tokenizer(text, apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
        return cast("list[str]", found)  # what comes without offsets and synonyms

    return tokenize


#: Endings that a stem has lost; a word that is open at its end may go on like this.
_ENDINGS = (
    *(
        "s",
        "es",
        "ed",
        "ies",
        "ied",
        "ing",
        "ings",
        "er",
        "ers",
        "ly",
        "al",
        "able",
        "ible",
        "ity",
        "ive",
        "ize",
        "ized",
    ),
    *("izing", "ization", "ion", "ions", "ation", "ations", "ational", "icate", "ication", "ications", "ically"),
    *("ment", "ments", "ness", "ance", "ence", "ful", "fulness", "ousness", "ional", "ement", "ements"),
)
_SHORTEST = 3


def word_with_stem(term: str) -> str:
    """A word whose stem is this one: a stem may have another stem of its own. "" when there seems to be none."""
    return next((word for ending in ("", "ing", "e", "ed", *_ENDINGS) if stem_word(word := term + ending) == term), "")


def completions(beginning: str) -> list[str]:
    """Words that begin so but whose stems do not: `parsi` → parsing, found under pars. Rather too many than too few."""
    found: dict[str, str] = {}
    for length in range(_SHORTEST, len(beginning)):
        begun = beginning[length:]
        for ending in _ENDINGS if len(begun) > 1 or begun in "eis" else ():
            if ending.startswith(begun):
                word = beginning[:length] + ending
                found.setdefault(stem_word(word), word)
    for ending in ("ing", "ed"):  # runn, for running
        found.setdefault(stem_word(beginning + ending), beginning + ending)
    root = stem_word(beginning)
    return [word for made, word in found.items() if not made.startswith(root)]
