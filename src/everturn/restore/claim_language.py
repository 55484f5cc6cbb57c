"""In which language a text is written, as far as a comparison of its words needs to know.

The words of a statement in one language cannot be looked for in a session that is held in another one. Names, numbers, files and
commands can. Script tells Japanese, Chinese and Korean apart, small words English, German, French, Spanish and Portuguese.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from everturn.text.statement_words import LANGUAGE_WORDS

_CODE = re.compile(r"```.{0,20000}?```|`[^`\n]{0,400}`|\S{0,200}[/\\_=<>{}]\S{0,200}|https?:\S{1,400}", re.S)
_KANA, _HANGUL, _HAN = re.compile(r"[\u3040-\u30ff]"), re.compile(r"[\uac00-\ud7a3]"), re.compile(r"[\u4e00-\u9fff]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")
_LEAST_SCRIPT = 0.1  # share of the letters that a script must have; one of its characters stands for several letters
_LEAST_LEAD = 1.5  # how much likelier the best language must be than the second
_MAX_CHARS = 8_000
_SHORT = 300  # characters of a message in which a single sentence counts
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s*|\n")
_SHARED = Counter(word for small in LANGUAGE_WORDS.values() for word in small)
_WEIGHTS = {word: 1 / count**2 for word, count in _SHARED.items()}  # a word of several languages tells little


@lru_cache(4_096)
def find_language(text: str) -> str:
    """Return the language of a text as a two-letter code; "" if its words do not tell."""
    prose = _CODE.sub(" ", text[:_MAX_CHARS])
    letters = len(_LETTER.findall(prose)) or 1
    kana, hangul, han = (len(script.findall(prose)) for script in (_KANA, _HANGUL, _HAN))
    if kana + hangul + han >= _LEAST_SCRIPT * letters:
        if hangul > kana + han:
            return "ko"
        return "ja" if kana >= _LEAST_SCRIPT * (kana + han) else "zh"
    if len(_CYRILLIC.findall(prose)) * 2 > letters:
        return "ru"
    words = [word.lower() for word in _WORD.findall(prose)]
    counts = sorted(
        ((sum(_WEIGHTS[word] for word in words if word in small), name) for name, small in LANGUAGE_WORDS.items()),
        reverse=True,
    )
    (best, name), (second, _) = counts[:2]
    return name if best and best >= _LEAST_LEAD * second else ""


def spoken_languages(text: str) -> frozenset[str]:
    """Return the languages of a message: of a short one those of each sentence, which may differ."""
    parts = [text, *(_SENTENCE.split(text) if len(text) <= _SHORT else ())]
    return frozenset(map(find_language, parts)) - {""}
