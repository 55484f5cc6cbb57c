"""What a word that stands nowhere in the archive may have been meant for: the nearest words that do.

One slip (a letter too many, too few, wrong, or two exchanged) for words of four letters and more, two for words of
eight and more. Words one slip away are made up and looked up, a few hundred of them; words two slips away are taken
from the vocabulary of the index as far as it has the same beginning. Where an engine cannot list its vocabulary, one
slip is all that is mended.
"""

from __future__ import annotations

from everturn.store import Store
from everturn.store.stemming import stem_word

SHORTEST = 4
LONG = 8
TWO = 2  # slips in a long word
MOST_SPELLINGS = 2  # words given
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_SAME_START = 3  # letters
_LISTED = 3000  # terms looked at
_SHORTEST_STEM = 6  # that two slips are forgiven for
_ENDINGS = frozenset("ation ations ion ions ing ings ed er ers ment ments ness ity ly able ive ance ence".split())


def nearest_words(store: Store, word: str) -> list[str]:
    """The most common of the nearest words; none for short words, numbers and ids. A stem is given open at the end."""
    if len(word) < SHORTEST or not (word.isascii() and word.isalpha()):
        return []
    root = stem_word(word)
    stems = ((stem_word(made), made) for made in sorted(words_one_slip_away(word), key=lambda made: (-len(made), made)))
    # Of words with the same stem one is enough: the shortest.
    by_stem = {near: made for near, made in stems if _is_regular(made, near, word, root)}
    known = store.known(list(by_stem.values()))
    if known or len(word) < LONG:
        return sorted(known, key=lambda other: (-known[other], other))[:MOST_SPELLINGS]
    terms = store.vocabulary(word[:_SAME_START], _LISTED)
    near = sorted((count_slips(root, term), term) for term in terms if len(term) >= _SHORTEST_STEM)
    return [f"{term}*" for far, term in near if far <= TWO][:MOST_SPELLINGS]


def _is_regular(made: str, near: str, word: str, root: str) -> bool:
    """The archive holds stems: a made-up word must not be found because its end only looks like an ending."""
    if made.startswith(near) and made[len(near) :] in _ENDINGS:
        return True
    return (near == made and root == word) or count_slips(root, near) <= 1


def count_slips(word: str, other: str) -> int:
    """How many slips lie between two words; letters exchanged are one."""
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
    """Every word that is one slip away and begins with the same letter: nearly nobody gets that one wrong."""
    halves = [(word[:at], word[at:]) for at in range(1, len(word) + 1)]
    made = {before + behind[1:] for before, behind in halves if behind}
    made |= {before + behind[1] + behind[0] + behind[2:] for before, behind in halves if len(behind) > 1}
    made |= {before + letter + behind[1:] for before, behind in halves if behind for letter in _LETTERS}
    made |= {before + letter + behind for before, behind in halves for letter in _LETTERS}
    return made - {word}
