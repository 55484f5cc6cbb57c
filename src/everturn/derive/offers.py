"""What an answer puts to the person, and what a short reply makes of it.

`find_offer` reads the end of an answer: its question, its options, and the proposal above them. `join_reply` reads a short
reply to it: `yes` accepts the proposal, `2`, `b` or `A and C` picks options, and a few other words answer a question that leaves a choice.
What is about something else is a request of its own, and so is whatever follows a question about what the person sees or needs. Replies are
understood in English, German, French, Spanish, Japanese and Chinese. Pure; never raises.
"""

from __future__ import annotations

import re

from msgspec import Struct

from everturn.derive.intent import is_approval, is_thanks, topic_words, word_count
from everturn.derive.open_sentences import is_question
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.sentences import split_sentences
from everturn.text.stance_words import ABOUT_TALK, AGREEMENT, IDLE_REPLY, NO_CHOICE, TAKES_SIDE, YES_NO

_LONGEST = 240
_OPTIONS = 12
_SHORT_REPLY = 12
_REPLY_WORDS = 25  # a longer reply is a request of its own
_END, _TAIL = 6_000, 1_500  # characters at the end of an answer that can hold an offer, and the question of it
_OWN_TOPICS = 3  # words of a reply that say what it is about: with fewer it needs its question
_ASKED = ("?", "？")


class Offer(Struct, frozen=True):
    """The question or proposal at the end of an agent's answer."""

    seq: int
    question: str = ""
    proposal: str = ""  # the sentence that says what would be done
    options: tuple[tuple[str, str], ...] = ()  # (letter or number, text)
    lead: str = ""  # the line above options that no question follows


class Answered(Struct, frozen=True):
    """A question and the answer of the person."""

    question: str
    answer: str
    agrees: bool = False  # it does no more than agree


#: Words that name an option.
_NOUN = r"(?:option|choice|approach|plan|variante?|opción|opção|lösung|方案|选项|选择|案|オプション)"
_OPTION = lazy_pattern(
    rf"^[ \t>]*(?:[-*•][ \t]+)?(?:\*\*|__)?\(?(?:{_NOUN}[ ]?)?([A-Ha-h]|\d{{1,2}})[.):：、）][ \t]*(?:\*\*)?[ \t]*(\S.{{1,600}})$",
    re.MULTILINE | re.IGNORECASE,
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
#: What a reply may say before the noun of an option.
_TAKES = (
    r"(?:let['’]?s\s+(?:do|go\s+with)|go\s+with|use|choose|pick|take|try|do|implement|apply|number|nr\.?|nimm|nehmen\s+wir|prends|prenons|implementa|implemente|usa|"
    r"使用|用|选择?|选|采用|采取|执行|实现|实施|按照?|就用?)(?:\s+(?:the|die|das|den|la|le|el|a|o)\b)?"
)
#: An option in a reply: alone, or with its noun, before anything else that is said.
_PICKED = rf"(?:(?:{_TAKES})?\s*{_NOUN}\s*|(?:let['’]?s\s+(?:do|go\s+with)|go\s+with|choose|pick|number|nr\.?|选)\s*)?[\[(#]?([a-h]|\d{{1,2}})[\])]?"
_PICK = lazy_pattern(
    rf"{_PICKED}(?:(?:\s*(?:[,，、&+/]|and|und|et|y|e|和|と)\s*){_PICKED})?(?:\s*[.!。！]?$|\s*[,.;:，。；：、—–]\s*\D)",
    re.IGNORECASE,
)
#: Questions that leave a choice: they name alternatives or ask which, what or how.
_LEAVES_CHOICE = lazy_pattern(
    r"\b(?:or|which|what|how|where|who|prefer\w*|choose|oder|welche\w*|was|wie|wo|lieber|ou|quel\w*|quoi|où|préf\w*|comment|o|u|cuál\w*|qué|cómo|dónde|prefier\w*|qual|quais|como|onde)\b"
    r"|还是|還是|哪|(?<!为)什么|(?<!為)什麼|怎么|怎麼|如何|多少|几|それとも|どちら|どれ|どの|どう|何|いつ|아니면|어느|어떤|무엇|어떻게",
    re.IGNORECASE,
)
#: Questions that only invite the person to speak, or ask what it sees.
_INVITES = lazy_pattern(
    r"\b(?:(?:help|assist)\b(?!er)|helfen|aid(?:er|e-moi)|ayudar\w*|ajudar\w*|(?:do|can|did) you (?:see|get|notice|try)|(?:try|test) (?:it|this|that|again)|see any|(?:anything|something|algo|etwas|autre chose) (?:else|más|anderes)"
    r"|puedes (?:ver|probar|decirme))\b|帮(?:你|您|到|助)|手伝|お困り|도와|看到什么|見えますか",
    re.IGNORECASE,
)


def is_choice(one: Answered) -> bool:
    """Whether an answer settles something about the work."""
    return not (is_question(one.answer) or NO_CHOICE.match(one.answer) or ABOUT_TALK.search(one.question))


def find_offer(text: str, seq: int) -> Offer | None:
    """Return the question, the options and the proposal at the end of an answer; None if there are none."""
    end = text[-_END:]
    question = _find_question(end[-_TAIL:])
    found = list(_OPTION.finditer(end))[-_OPTIONS:]
    options = tuple((one[1].lower(), _plain(one[2])) for one in found)
    proposal = _find_proposal(end, question)
    if not (question or proposal or len(options) > 1):
        return None
    above = "" if question or not options else end[: found[0].start()].rstrip().rpartition("\n")[2]
    return Offer(seq, one_line(question, _LONGEST), one_line(proposal, _LONGEST), options, _plain(above))


def _find_question(tail: str) -> str:
    """Return the last question of a text. Marks of Chinese and Japanese end a sentence and are not part of it."""
    flat = " ".join(tail.split())
    for one in reversed(list(split_sentences(tail))):
        if one.text.rstrip("*_\"') ").endswith(_ASKED):
            return one.text
        at = flat.rfind(one.text)
        if at >= 0 and flat[at + len(one.text) :].lstrip("*_\"') ")[:1] == "？":
            return f"{one.text}？"
    return ""


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
    if (numbered := _join_numbers(words, offer)) is not None:
        return numbered
    if not words or word_count(words) > _REPLY_WORDS or is_question(words):
        return None
    if picked := _PICK.match(words):
        return _join_pick(words, [one.lower() for one in picked.groups() if one], offer)
    if is_approval(words):
        about = " ".join(one for one in (offer.proposal, offer.question) if one)
        return Answered(about, words, True) if about else None
    if not offer.question or IDLE_REPLY.match(words) or is_thanks(words) or not _answers(words, offer):
        return None
    return Answered(offer.question, words)


def _join_pick(words: str, names: list[str], offer: Offer) -> Answered | None:
    """Return the options that a reply names, with their texts; None if one of them was not offered."""
    texts = dict(offer.options)
    about = offer.question or offer.proposal or offer.lead
    if not about or not all(texts.get(one) for one in names):
        return None
    return Answered(about, f"{words}: {' / '.join(texts[one] for one in names)}")


def _join_numbers(words: str, offer: Offer) -> Answered | None:
    """Return the numbered questions that a reply answers one after the other: `1. yes 2. in a field`."""
    texts, taken, place = dict(offer.options), list[str](), 0
    if len(texts) < _FEW_POINTS or words.count("\n#"):
        return None
    for found in _POINT.finditer(words):
        name = found[1]
        if not name.isdigit() or int(name) <= int(taken[-1] if taken else 0):
            continue
        if name not in texts or (not taken and found.start()) or (taken and not words[place : found.start()].strip()):
            return None
        taken.append(name)
        place = found.end()
    asked = sum(any(sign in texts[one] for sign in _ASKED) for one in taken)
    if len(taken) < _FEW_POINTS or 2 * asked < len(taken) or not words[place:].strip():
        return None
    return Answered(
        " / ".join(f"{one}. {one_line(texts[one].replace('**', ''), _POINT_WIDTH)}" for one in taken), words
    )


_FEW_POINTS, _POINT_WIDTH = 2, 90
#: The number of a point at the beginning of what is said to it.
_POINT = lazy_pattern(
    r"(?:(?<=\s)|^)(?:(?:for|re|to|on|zu|pour|para|sobre|关于|關於|对于|對於)\s*)?(?:q(?:uestion)?|point|punkt|frage|第|#)?\s?\(?(\d{1,2})[.):、：]?(?:[.):、：]|\s*[-–—=]>?|(?<=\d))\s+(?=\S)",
    re.IGNORECASE,
)


def _answers(words: str, offer: Offer) -> bool:
    """Whether a reply answers a question, and is no new request after it."""
    takes_side = TAKES_SIDE.match(words) or AGREEMENT.match(words)
    if YES_NO.match(offer.question.lstrip("*_¿ ")) and not (
        takes_side and (word_count(words) <= _SHORT_REPLY or AGREEMENT.match(words))
    ):
        return False
    if takes_side:
        return True
    if _INVITES.search(offer.question) or not _LEAVES_CHOICE.search(offer.question):
        return False
    said = topic_words(words)
    asked = topic_words(" ".join((offer.question, offer.proposal, *(one for _, one in offer.options))))
    return len(said) < _OWN_TOPICS or not said.isdisjoint(asked)
