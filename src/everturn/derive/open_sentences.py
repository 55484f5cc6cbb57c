"""Find the sentences of an answer that leave something open: a question, an offer, a step.

Hand-made patterns (`text.stance_words`) know how this is mostly put, in six languages. No list of phrases covers all of it,
so further sentences count by weights that were learnt from labelled answers. A sentence is turned into named features: its
words and pairs of words, how it begins and ends, where it stands in the message, and what the patterns see in it and
beside it. Each feature has a weight (`open_sentences.json`); the sums decide which sentences
count (`choose_open`); `derive.open_items` shows them. `python -m benchmarks.restore.learn` learns the weights. Words of any language count; names, paths, code and numbers become placeholders.
Rules of a person (`derive.decisions`) and their reports of trouble (`derive.failures`) are found the same way.

The same text always gives the same sentences, whatever was read before. Pure; never raises.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from everturn.derive.intent import loose_terms
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.sentences import Sentence, split_sentences
from everturn.text.stance_words import (
    ASKS_TO_CHECK,
    CAUTION,
    DID,
    DONE_WITH,
    LASTING,
    LEFT_AT_END,
    LEFT_TO_DO,
    MILD_OFFER,
    NEXT_STEP,
    OFFERED,
    ORDER_TO_PERSON,
    ORDERED_ANSWER,
    REPORTS_DONE,
    ROUTINE,
    STEPS_HEADING,
)

_MOST_OPEN = 16  # sentences of an answer
_END = 700  # characters at the end of an answer
_OFFERS = 1_200  # characters at the end in which an offer counts
_LAST = 3  # sentences at the very end in which an order is meant for the person
_LEAST_WORDS = 4  # a step with fewer words says nothing
_WORDS_READ = 60
_HEADING_WORDS = 6
#: Upper ends of the ranges into which places, lengths of a sentence and sizes of a message fall.
_PLACES = (1, 2, 3, 5, 8, 13, 21, 34)
_LENGTHS = (3, 5, 8, 13, 21, 34, 55)
_SIZES = (80, 200, 500, 1_200, 3_000, 8_000)


def is_question(sentence: str) -> bool:
    """Whether a sentence ends like a question."""
    return sentence.rstrip("*_\"') ").endswith(("?", "？", "ますか", "ですか", "でしょうか", "吗", "呢"))


def _is_question(one: Sentence) -> bool:
    return one.asks or is_question(one.text)


def _asks(one: Sentence) -> bool:
    """Whether a sentence asks the person something, also as an order."""
    return _is_question(one) or ORDERED_ANSWER.match(one.text.lstrip("*_ ")) is not None


def asks_person(features: Iterable[str]) -> bool:
    """Whether a sentence with these features asks the person something."""
    return not _ASKING.isdisjoint(features)


#: Features of a sentence that asks.
_ASKING = frozenset(("=question", "=last question", "=ordered answer"))


@lru_cache(maxsize=2)
def weigh_sentences(text: str) -> tuple[tuple[Sentence, WeighedSentence], ...]:
    """Return the sentences of an answer, in order, each with its log-odds."""
    weights, sentences = load_weights("open_sentences"), list(split_sentences(text))
    return tuple(
        (one, WeighedSentence(open_odds(features, weights), _asks(one), one.is_item))
        for one, features in zip(sentences, open_features(sentences), strict=True)
    )


class WeighedSentence(NamedTuple):
    """The log-odds that a sentence of an answer leaves something open, and what it is."""

    odds: float
    is_question: bool
    is_item: bool


def choose_open(weighed: Sequence[WeighedSentence], least: float = 0.0) -> list[int]:
    """Return the sentences of an answer that count, in order.

    A question counts for itself. The steps are one entry, which is told if the likeliest of them is clear; then milder ones
    count too, and a list of which a third counts does as a whole. `least` moves all three thresholds.
    """
    asked = [at for at, one in enumerate(weighed) if one.is_question and one.odds >= least + _ASKED]
    steps = {at for at, one in enumerate(weighed) if not one.is_question and one.odds >= least + _MILD}
    if max((weighed[at].odds for at in steps), default=-math.inf) < least + _CLEAR:
        return asked
    for listed in _lists(weighed):
        if len(steps.intersection(listed)) >= _LIST_SHARE * len(listed):
            steps.update(listed)
    return sorted(sorted((*asked, *steps), key=lambda at: -weighed[at].odds)[:_MOST_OPEN])


def _lists(weighed: Sequence[WeighedSentence]) -> Iterator[list[int]]:
    """Yield the steps of each list that is short enough to be told as a whole."""
    numbered = ((at, one.is_item and not one.is_question) for at, one in enumerate(weighed))
    for is_listed, run in groupby(numbered, key=lambda pair: pair[1]):
        listed = [at for at, _ in run]
        if is_listed and 1 < len(listed) <= LONGEST_LIST:
            yield listed


#: Log-odds: of a question, of the likeliest step of an answer, and of the steps beside it.
_ASKED, _CLEAR, _MILD = 0.7, 0.75, -0.2
_LIST_SHARE, LONGEST_LIST = 0.34, 12


def open_odds(features: Sequence[str], weights: Mapping[str, float]) -> float:
    """Return the log-odds that a sentence of an answer leaves something open. Its place alone is no reason: its words must speak for it.

    What an agent says between its calls is done by the end.
    """
    if _TOLD in features:
        return -math.inf
    if not PLAIN_SIGNS.isdisjoint(features):
        return max(0.0, sum_weights(features, weights))
    spoken = placed = 0.0
    for name in features:
        if name in weights:
            if name[0] == "=" and (name == "=" or name.startswith(_POSITIONS)):
                placed += weights[name]
            else:
                spoken += weights[name]
    return min(spoken + placed, spoken - _SPOKEN)


_SPOKEN = 0.01  # what the words of a sentence weigh at least
#: Beginnings of features that say where a sentence stands and how long it is.
_POSITIONS = ("=left", "=first", "=size", "=words", "=after", "=ends", "=with", "=lower", "=all")
#: Features with which a sentence counts whatever the weights say: in six languages.
PLAIN_SIGNS = frozenset(("=step", "=closing question"))
_NOTHING_SAID, _TOLD = "=says nothing", "=told"


def sum_weights(features: Sequence[str], weights: Mapping[str, float]) -> float:
    """Return the log-odds that a sentence is meant."""
    return sum(filter(None, map(weights.get, features)))


@lru_cache(maxsize=8)
def load_weights(name: str) -> dict[str, float]:
    """Return the weights of a file beside this module."""
    held: dict[str, float] = json.loads(Path(__file__).with_name(f"{name}.json").read_text("utf-8"))
    return held


# --- features ---
def open_features(sentences: Sequence[Sentence]) -> Iterator[list[str]]:
    """Yield the features of each sentence of an answer."""
    lead, listed = "", None  # the line with a colon above a list, and the features that its items share
    for number, features in enumerate(sentence_features(sentences, _signs(sentences))):
        one, following = sentences[number], sentences[number + 1] if number + 1 < len(sentences) else None
        words = one.text.strip("*_ ")
        lead = lead if one.is_item else words if words.endswith((":", "：")) else ""
        nothing = [_NOTHING_SAID] if _says_nothing(one, following) else []
        if not one.is_item:
            listed = None
        elif listed is None:
            listed = _lead_features(lead, one.heading)
        yield [*features, *_attitude(words), *(listed or ()), *nothing, *([_TOLD] if _NARRATES.match(words) else [])]


def _lead_features(lead: str, heading: str) -> list[str]:
    """Return the features of an item that say what its list is: the words above it, and whether they announce how to use what was made."""
    is_usage = _USAGE.match(lead) or _USAGE.match(heading.lstrip("*_# "))
    return [*(f"=lead {word}" for word in _words(lead)[:_HEADING_WORDS]), *(["=usage"] if is_usage else [])]


_USAGE = lazy_pattern(
    r"(?:(?:and |so )?(?:you|users?) can\b|(?:quick )?usage|how to (?:use|run|test)|to use|examples?|for example|commands?|features?|du kannst|beispiel|tu peux|vous pouvez|par exemple|puedes|por ejemplo|você pode|"
    r"例如|比如|使用方法|用法|示例|你(?:现在)?可以|使い方|使用方法|例えば)", re.IGNORECASE,
)  # fmt: skip


def _attitude(words: str) -> Iterator[str]:
    """Yield whether a sentence says what was done or still goes on, warns, or asks the person to check something: in many languages."""
    if DID.match(words) or words.endswith(_TICKED):
        yield "=did"
    if caution := CAUTION.match(words):
        yield "=caution"
        if _LABEL.match(words, caution.end()):
            yield "=caution label"
    lower = words.lower()
    if any(map(lower.__contains__, _GOES_ON)) and _UNDER_WAY.search(lower):
        yield "=under way"
    if any(map(lower.__contains__, _CHECKS)) and ASKS_TO_CHECK.search(words):
        yield "=asks to check"


#: One of these is in whatever goes on, and in whatever asks the person to check something: they are looked for first, for speed.
_GOES_ON = tuple(
    "running,progress,started,background,queued,building,training,deploying,downloading,"
    "en cours,en curso,andamento,läuft,行中,正在".split(",")
)
_CHECKS = tuple(
    "please,you,bitte,teste,relance,recharge,confirm,assure,verifi,comprueba,prueba,reinici,recarg,revisa,vérifie,redémarre,asegúrate,"
    "проверьте,запустите,перезапустите,обновите,попробуйте,убедитесь,请,麻烦,你,ください,お願い,必要".split(",")
)
_TICKED = ("✅", "✔", "✔️", "☑", "完了", "済み", "(done)")
_LABEL = lazy_pattern(r"[^:：]{0,14}[*_]{0,3}[:：]")
_UNDER_WAY = lazy_pattern(
    r"\b(?:still|now|currently) (?:running|in progress|training|downloading|building|deploying|queued)|\bin progress\b|\bhas started\b|\bin the background\b|\bmonitor (?:the |its )?progress\b|läuft (?:noch|gerade)|en cours|en curso|em andamento|実行中|進行中|正在(?:运行|训练|执行|下载|构建|进行)"
)


def sentence_features(
    sentences: Sequence[Sentence], signs: Sequence[Sequence[str]], marks: Sequence[str] = ()
) -> Iterator[list[str]]:
    """Yield the features of each sentence of a message: `signs` are what patterns see in each, `marks` belong to the message."""
    counts = Counter(listed[0] for listed in signs if listed)
    size = f"=size {_range(sum(len(one.text) for one in sentences), _SIZES)}"
    for number, one in enumerate(sentences):
        own = [
            *(f"=head {word}" for word in _words(one.heading)[:_HEADING_WORDS]),
            *(f"={sign}" for sign in signs[number]),
            *_surroundings(signs, number, counts),
            *_place(sentences, number),
        ]
        yield [*_word_features(one.text), *dict.fromkeys(own), *marks, "=", size]


@lru_cache(maxsize=256)
def _word_features(text: str) -> tuple[str, ...]:
    """Return the features of a sentence alone: several judgements are made of the same one."""
    words, found = _words(text), list[str]()
    found += [f"{first} {second}" for first, second in zip(["^", *words], [*words, "$"], strict=True)]
    found += [f"~{word[:_STEM]}" for word in words if len(word) > _STEM and word.isalpha()]
    found += [f"early {word}" for word in words[:_EARLY]]
    found += [f"mark {sign}" for sign in _SIGNS_READ.findall(text[:_CHARS_READ])]
    if _CAPITALS.search(text):
        found.append("=capital words")
    return tuple(dict.fromkeys((*words, *found, *_manner(words), f"=words {_range(len(words), _LENGTHS)}")))


_STEM, _EARLY, _CHARS_READ = 5, 4, 600
_SIGNS_READ = lazy_pattern(r"[!?:;,()\"—]")
_CAPITALS = lazy_pattern(r"\b[A-Z]{3,}\b")


def message_marks(text: str, sentences: Sequence[Sentence]) -> list[str]:
    """Return the features that all sentences of a message share: how much of it looks written for any task, not by hand for this one."""
    counts = {
        "user": text.count("the user"),
        "heading": len({one.heading for one in sentences if one.heading}),
        "item": sum(one.is_item for one in sentences),
        "template": len(_TEMPLATE.findall(text)),
        "fence": text.count("```"),
    }
    return [f"=all {name} {min(8, number).bit_length()}" for name, number in counts.items()]


#: Placeholders and front matter of a prompt that is written once for many tasks.
_TEMPLATE = lazy_pattern(r"\$ARGUMENTS|\A\s*---\n[\w-]+:|\{\{\w+\}\}|\[[A-Z_]{5,}\]")


def _manner(words: Sequence[str]) -> Iterator[str]:
    """Yield how a sentence begins, and how many words of it demand, tell of the past or name something."""
    first = next((word for word in words if word not in _FILLERS), "")
    yield f"=begins {next((name for name, known in _MANNERS.items() if first in known), 'otherwise')}"
    yield f"=demands {min(sum(word in _MANNERS['demand'] or word.endswith(_NEGATED) for word in words), 3)}"
    yield f"=names {min(sum(word[0] == '<' for word in words), 3)}"
    if any(word.endswith("ed") and len(word) > 4 for word in words):
        yield "=past"


_NEGATED = "n't"
_FILLERS = frozenset("please pls also and but so then now well ok okay yes no just actually".split())
_MANNERS = {
    "order": frozenset(
        "use make do add remove create show put run write update check fix change move rename follow leave let implement give set "
        "test commit push read look try find restart deploy install verify open".split()
    ),
    "person": frozenset("i we you it this that they he these those".split()),
    "demand": frozenset(
        "must should shall always never only need needs required ensure sure keep avoid prefer instead rather stay remain without "
        "not dont no cannot every each any all whenever everything nothing otherwise ignore stick consistent same exactly".split()
    ),
}


def _says_nothing(one: Sentence, following: Sentence | None) -> bool:
    """Whether a sentence hardly leaves anything open: too short, a heading, a polite end, or a question that the next sentence answers."""
    words = one.text.strip("*_ ")
    asks = _is_question(one)
    is_short = len(words.split()) < _LEAST_WORDS and not one.is_item and not asks
    is_polite = MILD_OFFER.search(words) is not None and len(loose_terms(words)) < _LAST and not asks
    goes_on = following is not None and following.passage == one.passage and not following.is_item
    is_answered = following is not None and goes_on and asks and not _is_question(following)
    is_heading = words.endswith(":") and len(words.split()) <= _LEAST_WORDS
    return is_short or is_polite or is_answered or is_heading


#: What an agent says between its calls: it was done by the end of the answer.
_NARRATES = lazy_pattern(
    r"(?:(?:now|next|first|then|ok(?:ay)?|great|perfect|good|excellent)[,!.]? )?(?:let me (?!know)|let's (?:check|look|see|verify)|I(?:['’]ll| will) (?:now )?(?:check|look|verify|examine|investigate|start by)\b)",
    re.IGNORECASE,
)


def _words(text: str) -> list[str]:
    """Return the words of a text in lower case, with placeholders for code, paths, names and numbers.

    Chinese, Japanese and Korean are cut into pairs of characters.
    """
    found = list[str]()
    for token in _TOKEN.findall(_CODE.sub(f" {_CODE_SIGN} ", text[:_CHARS_READ])):
        if token[0] >= _FIRST_CJK and token[0].isalpha():
            found += [token[at : at + 2] for at in range(max(1, len(token) - 1))]
        else:
            found.append(_word(token))
    return found[:_WORDS_READ]


_CODE_SIGN = "0x"  # stands for code while a text is cut into words
_CODE = lazy_pattern(r"`[^`\n]{1,200}`")
_FIRST_CJK = "\u3040"
_TOKEN = lazy_pattern(
    r"https?://\S+|[~.@\w-]*[/\\][\w./\\@~:*-]+|[A-Za-z0-9_-]+[._][A-Za-z0-9_][A-Za-z0-9_.]*|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+"
    r"|[^\W\d_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+(?:['’][^\W\d_]+)?|\d+x?"
)


def _word(token: str) -> str:
    if token.startswith(_CODE_SIGN) or "_" in token:
        return "<code>"
    if token[0].isdigit():
        return "<number>"
    if "/" in token or "\\" in token or "." in token:
        return "<path>"
    lower = token.lower()
    if token[1:] != lower[1:] and not token.isupper():
        return "<code>"
    return lower.replace("’", "'")


def _place(sentences: Sequence[Sentence], number: int) -> Iterator[str]:
    """Yield how a sentence ends and where it stands."""
    one = sentences[number]
    end = "?" if one.asks else one.text.rstrip("*_\"') ")[-1:]
    yield f"=ends {end}" if end in (".", "?", "!", ":", "？") else "=ends"
    yield f"=left {_range(len(sentences) - 1 - number, _PLACES)}"
    yield f"=first {_range(number, _PLACES)}"
    if number:
        before = sentences[number - 1].text.rstrip("*_ ")[-1:]
        yield f"=after {before if before in (':', '?', '!') else '.'}"
    if one.is_item:
        yield "=item"
    if one.pasted:
        yield "=pasted"
    if "**" in one.text:
        yield "=bold"
    if one.text[:1].islower():
        yield "=lower"


def _surroundings(signs: Sequence[Sequence[str]], number: int, counts: Mapping[str, int]) -> Iterator[str]:
    """Yield what the patterns see in the sentences beside one, and in how many others of the message (`counts` of all)."""
    for name, at in (("before", number - 1), ("behind", number + 1)):
        if 0 <= at < len(signs):
            yield from (f"={name} {sign}" for sign in signs[at])
    own = signs[number][:1]
    for sign, count in counts.items():
        if others := count - (sign in own):
            yield f"=with {sign} {_range(others, _PLACES)}"


def _range(value: int, ends: tuple[int, ...]) -> int:
    return next((end for end in ends if value < end), -1)


def _signs(sentences: Sequence[Sentence]) -> list[list[str]]:
    """Return what the patterns see in each sentence."""
    signs, below = list[list[str]](), 0  # characters from the sentence to the end
    closing = next(
        (one.passage for one in reversed(sentences) if not one.is_item), ""
    )  # above the options of a question
    for number in range(len(sentences) - 1, -1, -1):
        one, left = sentences[number], len(sentences) - 1 - number
        below += len(one.text)
        found = _pattern_signs(one, is_last=below <= _END or left < _LAST - 1)
        if _is_step(one, found, left):
            found.append("step")
        elif _asks(one) and (one.passage == closing or ("offered" in found and below <= _OFFERS)):
            found.append("closing question")
        signs.append(found)
    return signs[::-1]


def _pattern_signs(one: Sentence, is_last: bool) -> list[str]:
    words = one.text.lstrip("*_ ")
    found = [name for name, sign in _BEGINS.items() if sign.match(words)]
    found += [name for name, sign in _HOLDS.items() if sign.search(words)]
    if one.heading and STEPS_HEADING.match(one.heading):
        found.append("steps heading")
    if is_last:
        found += [f"last {name}" for name in found]
    if _is_question(one):
        found.append("last question" if is_last else "question")
    return found


def _is_step(one: Sentence, signs: Sequence[str], left: int) -> bool:
    """Whether the patterns alone make a sentence a step: it says so, or stands in a list of steps or at the very end."""
    words = one.text.lstrip("*_ ")
    count = len(words.split())
    is_heading = words.rstrip("*_ ").endswith(":") and count <= _LEAST_WORDS
    if is_heading or words.endswith("?") or one.asks or "done with" in signs:
        return False
    if "left to do" in signs or "last left at end" in signs or (one.is_item and "steps heading" in signs):
        return True
    return ("next" in signs and count >= _LEAST_WORDS) or ("order" in signs and left < _LAST <= count)


_BEGINS = {"next": NEXT_STEP, "order": ORDER_TO_PERSON, "ordered answer": ORDERED_ANSWER, "done": REPORTS_DONE}
_HOLDS = {
    "left to do": LEFT_TO_DO,
    "left at end": LEFT_AT_END,
    "done with": DONE_WITH,
    "offered": OFFERED,
    "lasting": LASTING,
    "routine": ROUTINE,
}
