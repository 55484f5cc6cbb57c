"""Detect phrases in a prompt that refer to something no longer in the window.

Fourteen phrases can do so. `find_reference` returns a hint only if one of them does, by rules that need no model:

1. The phrase must be the author's own, as whole words in any case: code, quotes, logs and pasted documents do not count,
   nor does a phrase in another sense (`so that file names …`, `earlier than`, `the previous commit`).
2. `that file`, `that error`, `that function`, `that thing` are resolved by a file name, an error, a function name, or
   anything at all in the window or in the prompt itself.
3. The other phrases are resolved by the subject of the sentence: at least half of its content words are in one text of the
   window. A sentence without any refers to the last message, and is resolved by any window that is not empty.
4. A previous session, chat or conversation is not in the window, unless the window mentions it.

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

ASK_TO_RECALL = " Use the conversation_recall tool to search for relevant context before proceeding."
HINT = (
    "[System: The user may be referencing earlier conversation that is no longer in your context window."
    f"{ASK_TO_RECALL}]"
)

_MAX_CHARS = 400_000  # read of a window, from its end


def find_reference(text: str, window_texts: Iterable[str]) -> str | None:
    """Return the hint if a prompt refers to something that is not in the window; else None."""
    references = [
        (found, sentence.text)
        for sentence in split_sentences(text)
        if not sentence.pasted
        for found in _PHRASE.finditer(sentence.text)
        if _refers_back(found, sentence.text)
    ]
    if not references:
        return None
    window = _Window(window_texts, text)
    return HINT if any(not _is_resolved(phrase, sentence, window) for phrase, sentence in references) else None


def subject_words(text: str) -> list[str]:
    """Return the content words of the sentences that refer back, in lower case."""
    sentences = [
        sentence.text
        for sentence in split_sentences(text)
        if not sentence.pasted and any(_refers_back(one, sentence.text) for one in _PHRASE.finditer(sentence.text))
    ]
    return list(dict.fromkeys(word for sentence in sentences for word in _content_words(sentence)))


def phrases_in(text: str) -> list[str]:
    """Return the phrases that occur in a text in any sense, in lower case."""
    return [found[0].lower() for found in _PHRASE.finditer(text)]


_PHRASE = lazy_pattern(r"\b(?:" + "|".join(phrase.replace(" ", r"\s+") for phrase in PHRASES) + r")\b", re.IGNORECASE)


# --- does it refer back? ---
_CLAUSE = lazy_pattern(
    r"\b(?:so|such|sure|ensure|ensures|means|says|said|given|note|assume|fact|confirm|in case|now|know|told|is|was|provided)\s+$",
    re.IGNORECASE,
)
#: After `that file` and the like: a compound noun, so `that` does not refer to anything.
_COMPOUND = lazy_pattern(
    r"\s+(?:names|paths|types|uploads?|access|systems?|handling|handlers?|codes|calls|signatures?|extensions?|sizes|formats|"
    r"permissions|locks?|descriptors?|reading|writing|changes|recovery|reporting|boundaries)\b",
    re.IGNORECASE,
)
#: Things that have a previous one outside any conversation.
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


def _refers_back(found: re.Match[str], sentence: str) -> bool:
    phrase = " ".join(found[0].lower().split())
    before, after = sentence[: found.start()], sentence[found.end() :]
    if any(before.count(sign) % 2 and sign in after for sign in ('"', "`", "“")):
        return False
    if phrase.startswith("that "):
        return not _COMPOUND.match(after) and not (phrase != "that thing" and _CLAUSE.search(before))
    if phrase == "the previous":
        return not _TECHNICAL.match(after)
    if phrase == "earlier":
        return not _EARLIER.match(after) and not _BEFORE_EARLIER.search(before)
    if phrase == "go back to":
        return not _BACK_TO.match(after) and not before.lower().rstrip().endswith(("users", "user", "refund to", "not"))
    return not (phrase == "we already" and _ALREADY.match(after))


# --- is it in the window? ---
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
    """The texts that the model can see."""

    def __init__(self, texts: Iterable[str], prompt: str) -> None:
        self.texts = _latest_texts(texts)
        self.prompt = prompt

    def contains(self, pattern: re.Pattern[str]) -> bool:
        """Whether the pattern matches in the window, or in the rest of the prompt."""
        return any(pattern.search(text) for text in (_PHRASE.sub(" ", self.prompt), *self.texts))

    def mentions(self, words: list[str]) -> bool:
        """Whether at least half of the words occur in one text, each by its stem: `test` matches `tests`."""
        stems = [_stem(word) for word in words]
        folded = (text.lower() for text in self.texts)
        return not stems or any(2 * sum(stem in text for stem in stems) >= len(stems) for text in folded)


def _latest_texts(texts: Iterable[str]) -> list[str]:
    """Return the last texts of a window, newest first, up to the limit."""
    kept: list[str] = []
    room = _MAX_CHARS
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
        return window.contains(pattern)
    if not window.texts:
        return False
    if _AWAY.search(sentence) and not phrase.startswith("that "):
        return any(_AWAY.search(text) for text in window.texts)
    return phrase == "that thing" or window.mentions(_content_words(sentence))


def _content_words(sentence: str) -> list[str]:
    words = (word.lower() for word in _WORD.findall(_PHRASE.sub(" ", sentence)))
    return list(dict.fromkeys(word for word in words if len(word) > 2 and word not in _IDLE))


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word
