"""The stems that FTS5's porter tokenizer makes, for those who need them outside of an FTS5 table.

The archive in PostgreSQL holds the same stems as the one in SQLite, because the same code makes them. It works on what
`derive.analysis` has folded: runs of letters and digits. Capitals make no difference.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, cast

import apsw

if TYPE_CHECKING:
    from collections.abc import Callable

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
