"""What an answer puts to the person, and what a short reply makes of it.

`find_offer` reads the end of an answer: its question, its options, and the proposal above them. `join_reply` reads a short
reply to it: `yes` accepts the proposal, `2` or `b` picks an option, and a few other words answer the question. Replies are
understood in English, German, French, Spanish, Japanese and Chinese. Pure; never raises.
"""

from __future__ import annotations

import re

from msgspec import Struct

from everturn.derive.intent import is_approval, word_count
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.sentences import split_sentences
from everturn.text.stance_words import ABOUT_TALK, AGREEMENT, IDLE_REPLY, NO_CHOICE, TAKES_SIDE, YES_NO

_LONGEST = 240
_OPTIONS = 12
_SHORT_REPLY = 12
_REPLY_WORDS = 25  # a longer reply is a request of its own
_END = 6_000  # characters at the end of an answer that can hold an offer


class Offer(Struct, frozen=True):
    """The question or proposal at the end of an agent's answer."""

    seq: int
    question: str = ""
    proposal: str = ""  # the sentence that says what would be done
    options: tuple[tuple[str, str], ...] = ()  # (letter or number, text)


class Answered(Struct, frozen=True):
    """A question and the answer of the person."""

    question: str
    answer: str
    agrees: bool = False  # it does no more than agree


_OPTION = lazy_pattern(
    r"^[ \t>]*(?:[-*•][ \t]+)?(?:\*\*|__)?\(?(?:Option[ ])?([A-Ha-h]|\d{1,2})[.):][ \t]*(?:\*\*)?[ \t]*(\S.{1,600})$",
    re.MULTILINE,
)
_PROPOSES = lazy_pattern(
    r"(?:^|\b)(?:recommend\w*|proposal|propos\w+|suggest\w*|my plan|the fix|the plan|i['’]d|i would|i['’]ll|i can|we (?:could|can|should)|"
    r"approach|solution|vorschlag|empfehl\w+|je propose|propongo|提案|建议|おすすめ)",
    re.IGNORECASE,
)
_HEADED_PLAN = lazy_pattern(
    r"^(?:#{1,6}[ \t]+|\*\*)[^\n]{0,40}?(?:fix|plan|proposal|approach|recommend\w*|solution|design|change)[^\n]{0,60}$",
    re.IGNORECASE | re.MULTILINE,
)
_PICK = lazy_pattern(
    r"(?:(?:let['’]?s\s+(?:do|go\s+with)|go\s+with|option|choose|pick|number|nr\.?|variante|opción|案)\s*)?[\[(#]?([a-h]|\d{1,2})[\])]?[.!]?",
    re.I,
)


def is_choice(one: Answered) -> bool:
    """Whether an answer settles something about the work."""
    return not (
        one.answer.rstrip().endswith(("?", "？")) or NO_CHOICE.match(one.answer) or ABOUT_TALK.search(one.question)
    )


def find_offer(text: str, seq: int) -> Offer | None:
    """Return the question, the options and the proposal at the end of an answer; None if there are none."""
    end = text[-_END:]
    tail = end[-1_500:]
    sentences = [one.text for one in split_sentences(tail)]
    question = next((one for one in reversed(sentences) if one.rstrip("*_\"') ").endswith(("?", "？"))), "")
    options = tuple((found[1].lower(), _plain(found[2])) for found in _OPTION.finditer(end))[-_OPTIONS:]
    proposal = _find_proposal(end, question)
    if not (question or proposal):
        return None
    return Offer(seq, one_line(question, _LONGEST), one_line(proposal, _LONGEST), options if question else ())


def _find_proposal(text: str, question: str) -> str:
    headed = list(_HEADED_PLAN.finditer(text))
    if headed:
        below = next(iter(split_sentences(text[headed[-1].end() :][:1_500])), None)
        if below is not None and word_count(below.text) >= 4 and below.text != question:
            return below.text
        return _plain(headed[-1][0])
    found = [one.text for one in split_sentences(text) if one.text != question and _PROPOSES.search(one.text)]
    return found[-1] if found else ""


def _plain(text: str) -> str:
    return one_line(text.strip(" #*_`"), _LONGEST)


def join_reply(text: str, offer: Offer) -> Answered | None:
    """Return the question a short reply answers and what was chosen; None if the reply is something else."""
    words = text.strip()
    if not words or word_count(words) > _REPLY_WORDS or words.endswith(("?", "？")):
        return None
    if picked := _PICK.fullmatch(words):
        chosen = dict(offer.options).get(picked[1].lower(), "")
        return Answered(offer.question, f"{words}: {chosen}") if chosen else None
    if is_approval(words):
        about = " ".join(one for one in (offer.proposal, offer.question) if one)
        return Answered(about, words, True) if about else None
    if not offer.question or IDLE_REPLY.match(words):
        return None
    if YES_NO.match(offer.question.lstrip("*_ ")) and not (
        TAKES_SIDE.match(words) and (word_count(words) <= _SHORT_REPLY or AGREEMENT.match(words))
    ):
        return None  # a new request after an offer
    return Answered(offer.question, words)
