"""What a person types into a search, taken apart: words, "phrases", -not, prefix*, OR.

    parse json              both words, anywhere in a message
    "parse json"            side by side, in this order; also what parse_json and parse.json mean
    parse -yaml             without that word; also -"a phrase"
    pars*                   everything that starts so; also "parse js"*
    json OR yaml toml       one of the first two, and the third

Nothing that can be typed is an error: an open quote runs to the end, an OR beside nothing is ignored, signs alone ask
for nothing. What is asked for has the shape of `store.Query`.
"""

from __future__ import annotations

import re
from itertools import islice

from msgspec import Struct

from everturn.derive.analysis import each_term

Phrase = tuple[str, ...]

#: More words than this are not looked at: a pasted page must not become a request that takes minutes.
MAX_WORDS = 64

#: And a phrase ends here: no two texts that share so many words in a row are told apart by the next one.
MAX_PHRASE = 32

_PIECE = re.compile(r'(?P<minus>-?)"(?P<quoted>[^"]*)(?:"(?P<star>\*?)|$)|(?P<word>[^\s"]+)')
_QUOTES = str.maketrans("“”„‟", '""""')


class Parsed(Struct, frozen=True):
    """A request: every group must match, by any one of its phrases; no phrase of `without` may."""

    groups: tuple[tuple[Phrase, ...], ...] = ()
    without: tuple[Phrase, ...] = ()
    shown: tuple[str, ...] = ()  # what was asked for in the words of the person, to mark it in a snippet


def parse(words: str) -> Parsed:
    """Take a request apart. Never raises; asks for nothing when there is nothing to look for."""
    groups: list[tuple[Phrase, ...]] = []
    without: list[Phrase] = []
    shown: list[str] = []
    joined = False  # an OR stands before this piece
    for number, match in enumerate(_PIECE.finditer(words.translate(_QUOTES))):
        if number >= MAX_WORDS:
            break
        if match["word"] == "OR":
            joined = True
            continue
        negated, text, prefix = _piece(match)
        phrase = _phrase(text, prefix)
        if not phrase:
            continue
        if negated:
            without.append(phrase)
        elif joined and groups:
            groups[-1] = (*groups[-1], phrase)
        else:
            groups.append((phrase,))
        if not negated:
            shown.append(text)
        joined = False
    return Parsed(tuple(groups), tuple(without), tuple(shown))


def _piece(match: re.Match[str]) -> tuple[bool, str, bool]:
    """Whether it is unwanted, its text, whether its end is open."""
    word = match["word"]
    if word is None:
        return match["minus"] == "-", match["quoted"], match["star"] == "*"
    # `--flag` is something to look for, `-word` something to leave out.
    negated = len(word) > 1 and word[0] == "-" and word[1] != "-"
    return negated, word.removeprefix("-").rstrip("*") if negated else word.rstrip("*"), word.endswith("*")


def _phrase(text: str, prefix: bool) -> Phrase:
    found = list(islice(each_term(text), MAX_PHRASE + 1))
    if len(found) > MAX_PHRASE:
        found.pop()
    elif found and prefix:
        found[-1] += "*"
    return tuple(found)
