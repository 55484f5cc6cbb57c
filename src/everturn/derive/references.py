"""Words in a prompt that point to something no longer in the window.

Fourteen phrases can do so. A hint is given only when one of them does, by rules that need no model:

1. The phrase must be the writer's own, as whole words in any case: code, quotes, logs and handed-over documents do not
   count, nor does a phrase in another sense (`so that file names …`, `earlier than`, `the previous commit`).
2. `that file`, `that error`, `that function`, `that thing` are resolved by a file name, an error, the name of a function,
   anything at all that stands in the window or in the prompt itself.
3. The other phrases are resolved by what the sentence is about: at least half of its telling words stand in one text of the
   window. A sentence without any points to what was said last, and is resolved by any window that is not empty.
4. A previous session, chat or conversation is by its nature not in the window, unless the window speaks of it.

The texts of the window are those the model can see: prompts, answers, calls and results.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.sentences import split_sentences

PHRASES = (
    "like we discussed", "as before", "remember when", "go back to", "that file", "that error", "that function",
    "what we did", "earlier", "the previous", "as I said", "like I mentioned", "that thing", "we already",
)  # fmt: skip

HINT = (
    "[System: The user may be referencing earlier conversation that is no longer in your context window. "
    "Use the conversation_recall tool to search for relevant context before proceeding.]"
)

_LOOKED_AT = 400_000  # characters of a window, from its end


def find_reference(text: str, window_texts: Iterable[str]) -> str | None:
    """The hint, when a prompt points to what the window does not hold; else None."""
    pointing = [
        (found, sentence.text)
        for sentence in split_sentences(text)
        if not sentence.pasted
        for found in _PHRASE.finditer(sentence.text)
        if _is_pointing_back(found, sentence.text)
    ]
    if not pointing:
        return None
    window = _Window(window_texts, text)
    return HINT if any(not _is_resolved(found, said, window) for found, said in pointing) else None


def phrases_in(text: str) -> list[str]:
    """The phrases that occur in a text at all, in lower case: what a search for words alone would find."""
    return [found[0].lower() for found in _PHRASE.finditer(text)]


_PHRASE = lazy_pattern(r"\b(?:" + "|".join(phrase.replace(" ", r"\s+") for phrase in PHRASES) + r")\b", re.IGNORECASE)


# whether it points ----------------------------------------------------------------------------------------------------
_CLAUSE = lazy_pattern(
    r"\b(?:so|such|sure|ensure|ensures|means|says|said|given|note|assume|fact|confirm|in case|now|know|told|is|was|provided)\s+$",
    re.IGNORECASE,
)
#: After `that file` and its like: the noun goes on, so `that` is no pointer.
_COMPOUND = lazy_pattern(
    r"\s+(?:names|paths|types|uploads?|access|systems?|handling|handlers?|codes|calls|signatures?|extensions?|sizes|formats|"
    r"permissions|locks?|descriptors?|reading|writing|changes|recovery|reporting|boundaries)\b",
    re.IGNORECASE,
)
#: Things that have a previous one outside of any conversation.
_TECHNICAL = lazy_pattern(
    r"\s+(?:\w+\s+)?(?:commits?|versions?|releases?|lines?|months?|weeks?|years?|days?|pages?|screens?|states?|values?|rows?|"
    r"elements?|nodes?|iterations?|branch|branches|tags?|index|item|items|chapters?|sections?|tabs?|buttons?|frames?|owner|"
    r"entry|token|hash|block|sibling|word|cell|record|character|run|build|deploy\w*|quarter|sprint|job|employer)\b",
    re.IGNORECASE,
)
_EARLIER = lazy_pattern(
    r"\s+(?:than|versions?|releases?|commits?|dates?|in\s+(?:the\s+)?(?:file|function|line|pipeline|day|morning|process|chain|20\d\d)|"
    r"this\s+(?:year|month|week)|lines?|stages?|python|pythons|browsers?|ones)\b",
    re.IGNORECASE,
)
_BEFORE_EARLIER = lazy_pattern(
    r"\b(?:much|\d+\s*\w+|minutes?|hours?|days?|weeks?|years?|start|wake|load\w*|run|fail|return|exit)\s+$", re.I
)
_BACK_TO = lazy_pattern(
    r"\s+(?:the\s+)?(?:\w+\s+)?(?:page|screen|menu|tab|start|top|beginning|main|master|sleep|work|zero|normal|original)\b",
    re.IGNORECASE,
)
_ALREADY = lazy_pattern(r"\s+(?:know|knew|are|is|were)\b", re.IGNORECASE)


def _is_pointing_back(found: re.Match[str], sentence: str) -> bool:
    """Whether the phrase is used in the sense that points back."""
    phrase = " ".join(found[0].lower().split())
    before, behind = sentence[: found.start()], sentence[found.end() :]
    if _is_quoted(before, behind):
        return False
    if phrase.startswith("that "):
        return not _COMPOUND.match(behind) and not (phrase != "that thing" and _CLAUSE.search(before))
    if phrase == "the previous":
        return not _TECHNICAL.match(behind)
    if phrase == "earlier":
        return not _EARLIER.match(behind) and not _BEFORE_EARLIER.search(before)
    if phrase == "go back to":
        return not _BACK_TO.match(behind) and not before.lower().rstrip().endswith(
            ("users", "user", "refund to", "not")
        )
    return not (phrase == "we already" and _ALREADY.match(behind))


def _is_quoted(before: str, behind: str) -> bool:
    return any(before.count(sign) % 2 and sign in behind for sign in ('"', "`", "“"))


# whether the window holds it ------------------------------------------------------------------------------------------
_FILE = lazy_pattern(r"[\w-]+\.(?!com\b|org\b|net\b|io\b)[A-Za-z][A-Za-z0-9]{0,5}\b(?!\.)|(?:/|\b)[\w.-]+/[\w.-]+")
_ERROR = lazy_pattern(
    r"\b\w*(?:error|exception)\b|\btraceback\b|\bfail(?:ed|s|ure|ing)?\b|\bpanic\b|\bcannot\b|\bfatal\b", re.I
)
_FUNCTION = lazy_pattern(r"\b[A-Za-z_]\w*\(|\b(?:def|func|fn|function|method)\s+[`\w]|`[A-Za-z_]\w*`")
_AWAY = lazy_pattern(r"\b(?:previous|earlier|last|other)\s+(?:session|conversation|chat|thread)\b", re.IGNORECASE)
_WORD = lazy_pattern(r"[^\W_](?:[\w.'-]*[^\W_])?")
_IDLE = frozenset(
    """
    a an and are as at be been but by can could did do does done for from get go going got had has have he her him his how i
    if in into is it its just keep let like made make may me might mine more my need new no not now of off ok okay on one only
    or other our out over please put same see should so some still such take than that the their them then there these they
    thing things this those to too try up us use used using very want was way we well were what when where which while who
    why will with would yes you your again also back before already earlier previous mentioned said discussed remember did
    change changed changes add added fix fixed look looking think don't didn't isn't it's let's that's we've i've i'm file error
    function must about all any because each first here first after really actually maybe something work worked works doing approach
    """.split()
)


class _Window:
    """What the model can see, looked at once."""

    def __init__(self, texts: Iterable[str], prompt: str) -> None:
        self.texts = _latest_texts(texts)
        self.prompt = prompt

    def shows(self, pattern: re.Pattern[str]) -> bool:
        """Whether such a thing stands in the window, or in the rest of the prompt."""
        return any(pattern.search(text) for text in (_PHRASE.sub(" ", self.prompt), *self.texts))

    def speaks_of(self, words: list[str]) -> bool:
        """At least half of the words in one text, each by its beginning: `tests` is spoken of where `test` is."""
        stems = [_stem(word) for word in words]
        folded = (text.lower() for text in self.texts)
        return not stems or any(2 * sum(stem in text for stem in stems) >= len(stems) for text in folded)


def _latest_texts(texts: Iterable[str]) -> list[str]:
    """The last texts of a window, the newest first, as many as are looked at."""
    kept: list[str] = []
    room = _LOOKED_AT
    for text in reversed([text for text in texts if text.strip()]):
        if room <= 0:
            break
        kept.append(text[-room:])
        room -= len(text)
    return kept


def _is_resolved(found: re.Match[str], sentence: str, window: _Window) -> bool:
    phrase = " ".join(found[0].lower().split())
    pattern = {"that file": _FILE, "that error": _ERROR, "that function": _FUNCTION}.get(phrase)
    if pattern is not None:
        return window.shows(pattern)
    if not window.texts:
        return False
    if _AWAY.search(sentence) and not phrase.startswith("that "):
        return any(_AWAY.search(text) for text in window.texts)
    return phrase == "that thing" or window.speaks_of(_telling_words(sentence))


def _telling_words(sentence: str) -> list[str]:
    words = (word.lower() for word in _WORD.findall(_PHRASE.sub(" ", sentence)))
    return list(dict.fromkeys(word for word in words if len(word) > 2 and word not in _IDLE))


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
