"""Turn text into the terms of the full-text index, in the same way for every engine, so that all find the same.

`fold(text)` goes to an engine's tokenizer; `terms(text)` returns the tokens that SQLite's FTS5 with `unicode61
remove_diacritics 0` makes of `fold(text)`. A test compares the two over all of Unicode. The choices:

- A term is a run of letters and digits in lower case; everything else, `_` too, separates. A word with separators
  is queried as a phrase: `parse_json_line` → (parse, json, line), `auth.py` → (auth, py).
- Accents and widths do not matter: `Café` → cafe, `ﬁle` → file, `Ｗｉｄｅ` → wide.
- Chinese, Japanese and Korean are written without spaces, or with endings attached, so every character of these
  scripts is a term and a word is a phrase: `会话` → (会, 话). Voiced kana stay different from unvoiced ones.
- NUL and lone surrogates, which no database accepts as text, and private-use characters separate.
- Invisible characters (soft hyphen, joiners, direction marks) are removed, so they do not split a word.
- A compound name is indexed whole and in parts: `index_text(text)` appends the parts of camelCase names to the folded
  text, each name once, so `parser` and (json, parser) find JsonParser while no phrase of the text is broken.

There are no stop words. The tokenizer of the index stems text and queries afterwards.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import filterfalse

_HANDLER = "everturn.fold"
_TERM = re.compile(r"[^\W_]+")
_ALPHANUMERIC = bytes(code if chr(code).isalnum() and code < 128 else 32 for code in range(256))
_HUMP = re.compile("[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*")
_LONGEST_NAME = 60
#: Dashes, arrows, rules of box drawing and the like in UTF-8: they only separate, and are most of what is not ASCII.
_SEPARATORS = re.compile(
    rb"\xe2(?:\x80[\x90-\xa7\xb0-\xbf]|\x81[\x80-\x9e]|\x86[\x90-\xbf]|[\x87-\x90\x94-\x9c\x9f-\xaf][\x80-\xbf]|\x9d[\x80-\xb5])"
)
#: Those that are most of them (after the number of a line, rules, a dash): to replace each by itself is several times faster.
_USUAL_SEPARATORS = "→─—"
_NAMES_WITHIN = 200_000  # characters: longer text is data, and its names are not worth the cost
_ZERO_WIDTH_SPACE = 0x200B
#: Letters that FTS5's older Unicode table takes for marks (New Tai Lue vowels, Vedic signs): they separate for both.
_DISPUTED = frozenset((*range(0x19B0, 0x19C1), 0x19C8, 0x19C9, 0x1CF2, 0x1CF3))
_SINGLE = (
    (0x3005, 0x31FF),  # iteration marks, kana, bopomofo
    (0x3400, 0x9FFF),  # Han
    (0xAC00, 0xD7A3),  # Hangul syllables
    (0xF900, 0xFAFF),  # Han, compatibility forms without a canonical one
    (0x1AFF0, 0x1B16F),  # rare kana
    (0x20000, 0x3FFFF),  # Han, extensions
)


def fold(text: str) -> str:
    """Return the text as it is indexed: plain letters, digits and separators. ASCII is returned as it is."""
    if not text.isascii():
        text = _fold_marks(text)
    return text.replace("\0", " ")


def index_text(text: str) -> str:
    """Return the folded text, followed by the parts of its compound names."""
    folded = fold(text)
    return f"{folded}\n{parts}" if (parts := _name_parts(folded[:_NAMES_WITHIN])) else folded


def humps(name: str) -> tuple[str, ...]:
    """Return the parts of a camelCase name in lower case; empty if it is not one, or only noise that looks like one."""
    if len(name) > _LONGEST_NAME:
        return ()
    found = _HUMP.findall(name)
    # Hashes and base64 change case every other letter; names do not.
    return tuple(map(str.lower, found)) if 1 < len(found) <= len(name) / 2.5 else ()


def terms(text: str) -> list[str]:
    """Return the terms of a text, in order."""
    return _TERM.findall(fold(text).lower())


def each_term(text: str) -> Iterator[str]:
    """Yield the terms of a text, for texts whose list of terms would not fit into memory."""
    return (match[0] for match in _TERM.finditer(fold(text).lower()))


def _fold_marks(text: str) -> str:
    for mark in _USUAL_SEPARATORS:
        text = text.replace(mark, " ")
    if text.isascii():
        return text
    if (data := _SEPARATORS.sub(b" ", text.encode("utf-8", "surrogatepass"))).isascii():
        return data.decode("ascii")
    # An encoder runs over ASCII at memory speed and calls back for the rest: several times faster than a pattern.
    return data.decode("utf-8", "surrogatepass").encode("ascii", _HANDLER).decode()


def _name_parts(folded: str) -> str:
    # Through bytes and words, because a pattern over the whole text takes twice as long. Most words are in lower case:
    # to test each is cheaper than to find out which ones repeat.
    words = folded.encode("ascii", "replace").translate(_ALPHANUMERIC).split()
    others = dict.fromkeys(filterfalse(bytes.islower, words))
    names = [word for word in others if not (word.istitle() or word.isupper() or word.isdigit())]
    return "\n".join(filter(None, map(_joined_humps, names)))


@lru_cache(16_384)
def _joined_humps(name: bytes) -> str:
    return " ".join(humps(name.decode()))


def _fold_foreign(error: UnicodeError) -> tuple[bytes, int]:
    """Fold a run of characters beyond ASCII; the encoder calls this for each."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    run = error.object[error.start : error.end]
    return _fold_short(run) if len(run) <= 8 else _fold_run(run), error.end


def _fold_run(run: str) -> bytes:
    # Composed first: a Hangul syllable or voiced kana may be decomposed, and must be one character to be one term.
    return unicodedata.normalize("NFKC", run).translate(_FOLDED).encode()


_fold_short = lru_cache(4096)(_fold_run)  # the dash, the quotes, an arrow, a rule of box drawing: the same few runs
codecs.register_error(_HANDLER, _fold_foreign)


class _FoldTable(dict[int, str]):
    """Code point → its folded text, computed when first seen. Bounded, so that no file fills the memory."""

    def __missing__(self, point: int) -> str:
        folded = _fold_point(point)
        if len(self) < 60_000:
            self[point] = folded
        return folded


_FOLDED = _FoldTable()


def _fold_point(point: int) -> str:
    char = chr(point)
    if any(first <= point <= last for first, last in _SINGLE) and char.isalnum():
        return f" {char} "
    return "".join(map(_plain_or_space, unicodedata.normalize("NFKD", char.lower()))).lower()


def _plain_or_space(char: str) -> str:
    category = unicodedata.category(char)
    if category[0] == "M" or (category == "Cf" and ord(char) != _ZERO_WIDTH_SPACE):
        return ""
    if char == "ς":
        return "σ"
    return char if char.isalnum() and ord(char) not in _DISPUTED else " "
