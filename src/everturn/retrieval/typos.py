"""Correct typing errors: find the words that were probably meant by a word that no message holds.

A word is left alone if it occurs anywhere in the archive, or if it is English: in `common_words.txt` by its stem, formed
regularly from a word of that list (unsaved, friendship), or made of two of them (goldfish). If other words of the query
match, a correction must occur in a session with one of them. The query keeps the word as it was typed.

One slip (a letter too many, missing, wrong, or two swapped) is corrected in words of four letters and more, two in words of
eight and more. Words one slip away are generated and looked up, a few hundred of them; words two slips away are taken
from the vocabulary of the index with the same beginning. If an engine cannot list its vocabulary, only one slip is corrected.
A short word has many neighbours by chance, so the correction of one must occur in several messages.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from msgspec.structs import replace

from everturn.retrieval.query import FILTERS, SearchQuery
from everturn.store.contract import IndexCandidates, IndexQuery, Store
from everturn.store.index import stem_word, stem_words

SHORTEST = 4
LONG = 8
TWO = 2  # slips in a long word
MOST_SPELLINGS = 2  # words returned
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SAME_START = 3  # letters
_LISTED = 3000  # terms compared
_SHORTEST_STEM = 6  # in which two slips are corrected
CORRECTED = 2  # words of a query
_SHORT = 6  # a shorter word
_SEVERAL = 3  # messages with the correction of a short word
_LOOKED_AT = 200  # messages with a correction
_ENDINGS = frozenset("ation ations ion ions ing ings ed er ers ment ments ness ity ly able ive ance ence".split())


def nearest_words(store: Store, word: str) -> list[str]:
    """Return the most common of the nearest words; none for short words, numbers and ids. A stem becomes a prefix."""
    if len(word) < SHORTEST or not (word.isascii() and word.isalpha()):
        return []
    root = stem_word(word)
    stems = ((stem_word(made), made) for made in sorted(words_one_slip_away(word), key=lambda made: (-len(made), made)))
    # Of words with the same stem one is enough: the shortest.
    by_stem = {near: made for near, made in stems if _is_regular(made, near, word, root)}
    least = _SEVERAL if len(word) < _SHORT else 1
    counted = store.count_words(list(by_stem.values()))
    known = {other: n for other, n in counted.items() if n >= least}
    if known or len(word) < LONG:
        return sorted(known, key=lambda other: (-known[other], other))[:MOST_SPELLINGS]
    terms = store.vocabulary(word[:_SAME_START], _LISTED)
    near = sorted((count_slips(root, term), term) for term in terms if len(term) >= _SHORTEST_STEM)
    return [f"{term}*" for far, term in near if far <= TWO][:MOST_SPELLINGS]


def _is_regular(made: str, near: str, word: str, root: str) -> bool:
    """Whether a generated word may be used. The index has stems, so its end must not only look like an ending."""
    if made.startswith(near) and made[len(near) :] in _ENDINGS:
        return True
    return (near == made and root == word) or count_slips(root, near) <= 1


def count_slips(word: str, other: str) -> int:
    """Count the slips between two words; two swapped letters are one."""
    older: list[int] = []
    above = list(range(len(other) + 1))
    for at, letter in enumerate(word, 1):
        row = [at]
        for number, sign in enumerate(other, 1):
            best = min(above[number] + 1, row[-1] + 1, above[number - 1] + (letter != sign))
            if older and number > 1 and letter == other[number - 2] and word[at - 2] == sign:
                best = min(best, older[number - 2] + 1)
            row.append(best)
        older, above = above, row
    return above[-1]


def words_one_slip_away(word: str) -> set[str]:
    """Return all words one slip away with the same first letter, which hardly anybody gets wrong."""
    halves = [(word[:at], word[at:]) for at in range(1, len(word) + 1)]
    made = {before + behind[1:] for before, behind in halves if behind}
    made |= {before + behind[1] + behind[0] + behind[2:] for before, behind in halves if len(behind) > 1}
    made |= {before + letter + behind[1:] for before, behind in halves if behind for letter in _LETTERS}
    made |= {before + letter + behind for before, behind in halves for letter in _LETTERS}
    return made - {word}


# --- words of a query ---


def find_replacements(store: Store, query: IndexQuery, found: IndexCandidates) -> dict[str, list[str]]:
    """Return the plain words of a query that are typing errors, each with the words to search too."""
    counts = dict(zip(found.phrases, found.counts, strict=True))
    plain = [
        phrase[0]
        for phrase, weight in zip(query.optional, query.weights, strict=False)
        if len(phrase) == 1 and weight >= 1.0 and not phrase[0].endswith("*")
    ]
    absent = [word for word in plain if not counts.get((word,), 1.0) and not is_english(word)]
    elsewhere = store.count_words(absent) if absent and query.fields else {}  # the counts are of the fields alone
    unknown = [word for word in absent if word not in elsewhere][:CORRECTED]
    near = {word: _fitting_words(store, query, found, nearest_words(store, word)) for word in unknown}
    return {word: others for word, others in near.items() if others}


def _fitting_words(store: Store, query: IndexQuery, found: IndexCandidates, words: list[str]) -> list[str]:
    """Return the corrections that occur in a session with another word of the query; all of them if no other word matches."""
    sessions = {entry.session for entry in found.entries}
    if not sessions:
        return words
    kept = []
    for word in words:
        entries = store.candidates(replace(query, groups=(((word,),),)), _LOOKED_AT).entries
        if any(entry.session in sessions or len(entry.held) > 1 for entry in entries):
            kept.append(word)
    return kept


# --- names of filters ---

_NAME_AND_VALUE = re.compile(r"([A-Za-z]{2,20}):(?!//)")
_LONG_NAME = 6


def meant_filters(query: SearchQuery) -> list[tuple[str, str]]:
    """Return the words that look like a filter with a misspelt name, each with the name that was probably meant."""
    words = [piece.text for piece in query.pieces if not piece.quoted]
    matches = [(word, match[1].lower()) for word in words if (match := _NAME_AND_VALUE.match(word))]
    return [(word, near) for word, name in matches if (near := _nearest_filter(name))]


def _nearest_filter(name: str) -> str:
    same = [one for one in FILTERS if stem_word(one) == stem_word(name)]
    if same or is_english(name):
        return same[0] if same else ""
    slips, near = min((count_slips(name, one), one) for one in FILTERS)
    return near if slips <= (TWO if len(near) >= _LONG_NAME else 1) else ""


# --- English words ---

_SHORTEST_PART = 4  # letters of a part of a word
_PREFIXES = tuple("un re non pre de dis mis over under sub inter multi anti auto out up fore".split())
_SUFFIXES = tuple("ship hood ish like wise less est ier iest ist ism".split())


def is_english(word: str) -> bool:
    """Whether a word is common English, or formed from common English words."""
    return _is_listed(word) or _is_formed(word)


def _is_formed(word: str) -> bool:
    rests = [word[len(prefix) :] for prefix in _PREFIXES if word.startswith(prefix)]
    rests += [word[: -len(suffix)] for suffix in _SUFFIXES if word.endswith(suffix)]
    if any(len(rest) >= _SHORTEST_PART and _is_listed(rest) for rest in rests):
        return True
    cuts = range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
    return any(word[:at] in _listed_words() and _is_listed(word[at:]) for at in cuts)


def _is_listed(word: str) -> bool:
    return word in _listed_words() or stem_word(word) in _listed_stems()


@cache
def _listed_words() -> frozenset[str]:
    text = files("everturn.retrieval").joinpath("common_words.txt").read_text("ascii")
    return frozenset(text.split())


@cache
def _listed_stems() -> frozenset[str]:
    return frozenset(stem_words(" ".join(sorted(_listed_words()))))
