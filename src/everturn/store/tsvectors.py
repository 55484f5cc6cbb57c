"""Text as PostgreSQL's `tsvector` literals: the stems of its terms with their places.

A `tsvector` has limits (1 MB, 16,383 positions, 255 places and 2 kB a term) and drops silently what is beyond some of
them. So a long text becomes several rows, cut before a limit is reached, each beginning with the last terms of the one
before: a phrase of up to OVERLAP + 1 terms is found wherever it stands, of a longer one the first that many terms count.
A term longer than LONGEST characters is known by its beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import count, islice

from everturn.derive.analysis import fold, index_text
from everturn.store.stemming import stem_words

PART = 8_000  # terms in a row at most
OVERLAP = 64
LONGEST = 500  # characters, at most 2,000 bytes
REPEATS = 250  # of one term in a row
CHARACTERS = 200_000  # of different terms in a row, at most 800,000 bytes

_AT_ONCE = 1_000_000  # characters whose terms are held in memory
_NUMBERS = tuple(map(str, range(1, PART + 1)))


def tsvector_literals(text: str, pieces: bool = False) -> Iterator[tuple[int, str, int]]:
    """Number, literal and number of terms of the rows that together hold a text; with the pieces of its names."""
    numbers = count()
    cut = (term[:LONGEST] for term in _stems_of_text(index_text(text) if pieces else fold(text)))
    part = list(islice(cut, PART))
    while part:
        yield from ((next(numbers), literal, size) for literal, size in _vector_literals(part))
        fresh = list(islice(cut, PART - OVERLAP))
        part = part[-OVERLAP:] + fresh if fresh else []


def _stems_of_text(folded: str) -> Iterator[str]:
    """One by one, from texts whose list of terms would not fit into memory too."""
    start = 0
    while start < len(folded):
        end = min(start + _AT_ONCE, len(folded))
        if end < len(folded):
            # Between two words, if there are any.
            end = max(folded.rfind(" ", start, end), folded.rfind("\n", start, end), start) + 1
            end = end if end > start + 1 else start + _AT_ONCE
        yield from stem_words(folded[start:end])
        start = end


def _vector_literals(part: list[str]) -> Iterator[tuple[str, int]]:
    places: dict[str, list[str]] = defaultdict(list)
    for term, number in zip(part, _NUMBERS, strict=False):
        places[term].append(number)
    if max(map(len, places.values())) > REPEATS or sum(map(len, places)) > CHARACTERS:
        half = len(part) // 2
        yield from _vector_literals(part[:half])
        yield from _vector_literals(part[half - OVERLAP :])
    else:
        yield " ".join([f"{term}:{','.join(numbers)}" for term, numbers in places.items()]), len(part)
