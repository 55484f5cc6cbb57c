"""The person's requests in their own words, each joined to the question it answers.

A person speaks in prompts, in slash commands with arguments, and in answers to questions. `own_words` leaves out what was
pasted into a prompt: code, logs, traces, front matter, tagged text. `find_offer` reads the end of an answer of the agent:
its question, its options, and the proposal above them. `join_reply` reads a short reply to it: `yes` accepts the
proposal, `2` or `b` picks an option, and a few other words answer the question. `find_answers` reads the result of a call
that asked the person. `find_revisions` finds the sentences that change what was decided before. `advance_loose_ends` keeps what
was offered, asked or put off until somebody takes it up. Replies are understood in English, German, French, Spanish, Japanese and Chinese.

Pure: no input or output, no model. Never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from msgspec import Struct

from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.sentences import split_sentences
from everturn.text.stance_words import AGREEMENT, APPROVAL, MORE_WANTED, PUT_TO_PERSON, REVISION, TAKEN_BACK, THANKS

_LONGEST = 240
_OPTIONS = 12
_GROWTH = 5  # words: a shorter request is a step of the same work
_SHORT_REPLY = 12
_REPLY_WORDS = 25  # a longer reply is a request of its own
_END = 6_000  # characters at the end of an answer that can hold an offer
_READ = 24_000
_TITLE = 300
_MAX_WORDS = 60  # a longer sentence is a story


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


# --- the words of a person ---
_FRONT_MATTER = lazy_pattern(r"\A\s*\"?---[ \t]*\n.{0,4000}?\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_COMMAND_NAME = lazy_pattern(r"<command-name>\s*/?([^<\s]{1,80})\s*</command-name>")
_COMMAND_ARGS = lazy_pattern(r"<command-args>(.{0,4000}?)</command-args>", re.DOTALL)
#: Commands of a client that say nothing about the work.
CLIENT_COMMANDS = frozenset(
    "clear compact model exit quit help config cost login logout resume status doctor memory mcp hooks agents plugin plugins "
    "theme vim fast effort context usage ide terminal-setup permissions rename export init-terminal reload-plugins skills".split()
)


def own_words(text: str) -> str:
    """Return the sentences of a prompt that its author wrote, on one line; "" if all of it was pasted."""
    spoken = [one.text for one in split_sentences(_FRONT_MATTER.sub("\n", text[:_READ])) if not one.pasted]
    return " ".join(spoken)


def command_words(text: str) -> str:
    """Return a slash command with its arguments, "" for one that only steers the client."""
    found = _COMMAND_NAME.search(text[:2_000])
    if found is None or found[1].lower() in CLIENT_COMMANDS:
        return ""
    given = _COMMAND_ARGS.search(text)
    return f"/{found[1]} {given[1].strip() if given else ''}".strip()


def word_count(text: str) -> int:
    """Return how many words a text has. Two characters of Chinese or Japanese count as one word."""
    wide = len(_WIDE.findall(text))
    return len(_WIDE.sub(" ", text).split()) + (wide + 1) // 2


_WIDE = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


# --- requests that say what is wanted ---
_SMALL_TALK = lazy_pattern(
    r"^(?:hi|hello|hey|yo|hola|bonjour|salut|hallo|moin|こんにちは|你好|ping|test(?:ing)?|thanks?|thank you|continue|go on|"
    r"weiter|continue[sz]?|sigue|続けて|继续)\b[\s\w,!.]{0,30}$",
    re.IGNORECASE,
)
_LOOK = lazy_pattern(
    r"^(?:what|which|who|how|why|when|where|is|are|do|does|did|can you (?:see|hear|tell|explain)|tell me|list|show)\b",
    re.I,
)
_ORDER = lazy_pattern(
    r"^(?:please\s+)?(?:process|implement|add|fix|create|build|write|update|review|refactor|make|find|investigate|analy[sz]e|"
    r"execute|complete|continue|perform|generate|remove|migrate|port|document|test|design|plan|check|run|set up|read|help)\b",
    re.IGNORECASE,
)


def asks_for_work(text: str) -> bool:
    """Whether a request asks for work, not only for a look or for nothing."""
    words = text.strip()
    if words.startswith("/") and " " in words:
        return True
    if word_count(words) < 4 or _SMALL_TALK.match(words):
        return False
    return not (_LOOK.match(words) and word_count(words) <= 12)


def adds_work(text: str) -> bool:
    """Whether a later request asks for more, and not only a question."""
    words = text.strip()
    return (
        word_count(words) > _GROWTH
        and asks_for_work(words)
        and (not words.endswith(("?", "？")) or bool(_ASKS.search(words)))
    )


_ASKS = lazy_pattern(
    r"\b(?:can|could|would|will) (?:you|we)\b|\bplease\b|\blet['’]?s\b|\bkannst du\b|\bpeux-tu\b|\bpuedes\b",
    re.IGNORECASE,
)


def is_routine_request(text: str) -> bool:
    """Whether a request says nothing about how the work is to be done: `commit`, `push it`, `continue`, `yes`."""
    words = _ROUTINE_LEAD.sub("", text.strip())
    return word_count(words) <= _GROWTH and bool(_ROUTINE_ORDER.match(words) or is_approval(text) or not words)


_ROUTINE_LEAD = lazy_pattern(
    r"^(?:(?:please|ok(?:ay)?|yes|yep|great|good|perfect|nice|now|and|then|also|let['’]?s|go ahead and|can you|could you|just|bitte|ja|oui|sí)\b[ ,.!]*)+",
    re.IGNORECASE,
)
_ROUTINE_ORDER = lazy_pattern(
    r"(?:commit|push|continue|proceed|go on|go ahead|redo|do (?:it|that|so)|implement the following plan|open (?:a|the) pr|merge|tag|next|weiter|committe|pushe|continue[sz]?|sigue|コミット|プッシュ|続けて|提交|推送|继续)",
    re.IGNORECASE,
)


def goal_words(text: str) -> str:
    """Return what a prompt asks for. Of a long document: its title and the order under a heading that announces one."""
    text = _FRONT_MATTER.sub("\n", text[:_READ])
    if command := command_words(text):
        return command
    spoken = own_words(text)
    is_typed = len(text) <= 1_500 or (word_count(spoken) >= 6 and len(spoken) <= 800)
    if is_typed and not is_role(text):
        return spoken or text
    return " ".join(dict.fromkeys(_document_goal(text, spoken))) or spoken or text


_PURPOSE = lazy_pattern(
    r"^[ \t#*_-]{0,6}(?:purpose|goal|objective|intent|task|aim|ziel|objectif|objetivo|目的|目标)[*_]{0,2}:[*_]{0,2}[ \t]*\S[^\n]{3,400}$",
    re.I | re.M,
)
#: A prompt that a program wrote for an agent begins so.
_ROLE = lazy_pattern(r"\W{0,8}(?:context\b|you are\b|your name is\b|system\b|role\b)", re.IGNORECASE)


def is_role(text: str) -> bool:
    """Whether a program wrote a prompt for an agent: it begins with who the agent is."""
    return bool(_ROLE.match(text))


def _document_goal(text: str, spoken: str) -> Iterator[str]:
    """Yield the sentences of a long prompt that say what is to be done."""
    lines = [line.strip(' #*"') for line in text.splitlines() if line.strip(' #*"-')]
    if lines and _ORDER.match(lines[0]):
        yield one_line(lines[0], _TITLE)
        if len(lines) > 1 and word_count(lines[0]) <= 6:
            yield one_line(lines[1], _TITLE)
    if purpose := _PURPOSE.search(text):
        yield one_line(purpose[0].strip(" #*_\n"), _TITLE)
    orders = [
        one.text for one in split_sentences(text) if _ORDER.match(one.text.lstrip("*_ ")) and word_count(one.text) > 3
    ]
    if not orders and spoken:
        yield one_line(spoken, _TITLE)
    yield from orders[:2]


# --- offers and replies ---
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
_IDLE_REPLY = lazy_pattern(
    r"^(?:continue|go on|weiter|thanks?|thank you|done|hi|hello|\[|/|<|what|why|how|where|when|who|which|is|are|can|could|did|does|it|i['’]?m|there|still)\b|^[\[</]",
    re.I,
)


#: Questions that `yes` or `no` answers.
_YES_NO = lazy_pattern(
    r"(?:want|would|do|does|did|shall|should|can|could|is|are|may|any|good|ok(?:ay)?|ready|soll|möchte|willst|kann|veux-tu|voulez|dois-je|quieres|puedo|debo)\b",
    re.IGNORECASE,
)
_TAKES_SIDE = lazy_pattern(
    r"(?:yes|yep|yeah|no|nope|nah|just|only|do|leave|keep|use|let['’]?s|start|first|both|neither|skip|go|don['’]?t|never ?mind|ja|nein|oui|non|sí|si)\b",
    re.IGNORECASE,
)
#: Answers that hand the choice back or only move on, and questions about the conversation.
_NO_CHOICE = lazy_pattern(
    r"(?:you (?:decide|choose|pick)|up to you|next\b|done\b|continue|move on|skip|hm+|not sure|i don['’]?t know|whatever|either|wait[.!]*$|show me|(?:i want|let me) (?:to )?see|"
    r"yes, (?:continue|proceed|generate)|no more|let me think|du entscheidest|comme tu veux|tú decides|任せます|你决定)",
    re.IGNORECASE,
)
_ABOUT_TALK = lazy_pattern(
    r"more questions|next area|anything else|which (?:areas|topics)|ready to (?:continue|proceed|move)|are we done",
    re.IGNORECASE,
)


def is_choice(one: Answered) -> bool:
    """Whether an answer settles something about the work."""
    return not (
        one.answer.rstrip().endswith(("?", "？")) or _NO_CHOICE.match(one.answer) or _ABOUT_TALK.search(one.question)
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


def is_approval(text: str) -> bool:
    """Whether a reply does no more than agree."""
    return bool(APPROVAL.fullmatch(text.strip().rstrip(".!。！ ")))


def is_thanks(text: str) -> bool:
    """Whether a prompt only thanks or says goodbye."""
    return word_count(text) <= _SHORT_REPLY + 8 and bool(THANKS.match(text)) and not MORE_WANTED.search(text)


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
        return Answered(about, words) if about else None
    if not offer.question or _IDLE_REPLY.match(words):
        return None
    if _YES_NO.match(offer.question.lstrip("*_ ")) and not (
        _TAKES_SIDE.match(words) and (word_count(words) <= _SHORT_REPLY or AGREEMENT.match(words))
    ):
        return None  # a new request after an offer
    return Answered(offer.question, words)


# --- calls that ask ---
_PAIR = lazy_pattern(r'"([^"\n]{2,600}?)"\s?=\s?"([^"]{1,1000}?)"(?=[\s,.;]|$)')
_TAGGED_ANSWER = lazy_pattern(r"<answer>\s*(.{1,1000}?)\s*</answer>", re.DOTALL)


def find_answers(given: Any, output: str) -> list[Answered]:
    """Return the questions of a call to the person with the answers in its result."""
    shown = output[:20_000]
    if pairs := _PAIR.findall(shown):
        return [Answered(one_line(question, _LONGEST), one_line(answer, _LONGEST)) for question, answer in pairs]
    asked = list(_asked(given))
    answers = list(_plain_answers(shown))
    return [Answered(question, one_line(answer, _LONGEST)) for question, answer in zip(asked, answers, strict=False)]


def _asked(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield one_line(given, _LONGEST)
    elif isinstance(given, dict):
        listed = given.get("questions")
        for item in listed[:10] if isinstance(listed, list) else [given]:
            words = (
                item
                if isinstance(item, str)
                else item.get("question") or item.get("text")
                if isinstance(item, dict)
                else None
            )
            if isinstance(words, str) and words.strip():
                yield one_line(words, _LONGEST)


def _plain_answers(output: str) -> Iterator[str]:
    if tagged := _TAGGED_ANSWER.findall(output):
        yield from tagged
        return
    try:
        held = json.loads(output)
    except ValueError:
        return
    answers = held.get("answers") if isinstance(held, dict) else None
    for one in answers.values() if isinstance(answers, dict) else answers if isinstance(answers, list) else ():
        words = one.get("answers", one.get("answer")) if isinstance(one, dict) else one
        words = ", ".join(map(str, words)) if isinstance(words, list) else words
        if isinstance(words, str) and words.strip():
            yield words


# --- revisions ---
class Revision(Struct, frozen=True):
    """A sentence in which a person chooses something else (`superseded`) or takes something back."""

    status: str  # superseded | rejected
    terms: frozenset[str]
    text: str = ""


def find_revisions(text: str) -> list[Revision]:
    """Return the sentences of a prompt that change what was decided before."""
    if not (REVISION.search(text) or TAKEN_BACK.search(text)):
        return []
    found = []
    for sentence in split_sentences(text):
        words = sentence.text
        if sentence.pasted or len(words.split()) > _MAX_WORDS or words.rstrip("*_ ").endswith("?"):
            continue
        if REVISION.search(words) or TAKEN_BACK.search(words):
            found.append(Revision("superseded" if REVISION.search(words) else "rejected", _terms(words), words))
    return found


def revised_status(text: str, revisions: Iterable[Revision]) -> str:
    """Return what became of a decision after some later sentences, "" if none of them is about it."""
    terms = _terms(text)
    least = max(_COMMON_TERMS, _COMMON_SHARE * len(terms))
    found = (one for one in revisions if len(terms & one.terms) >= least)
    return next((one.status for one in found if text not in one.text), "")  # one that repeats it revises something else


@lru_cache(maxsize=1024)
def _terms(text: str) -> frozenset[str]:
    return frozenset(word.lower().removesuffix("s") for word in _TERM.findall(text)) - _EVERYDAY


_COMMON_TERMS, _COMMON_SHARE = 2, 0.4  # that a revision has in common with what it revises
_TERM = lazy_pattern(r"[\u3040-\u30ff\u3400-\u9fff]{2}|[^\W\d_][\w./-]{2,}[^\W_]")
_EVERYDAY = frozenset(
    ("this that with from into have keep make instead actually rather should would could must please also them they then there here "
     "what when where your only just like more some same again about switch change remove drop revert undo").split()
)  # fmt: skip


# --- loose ends ---
class LooseEnd(Struct, frozen=True):
    """A sentence that offers something, asks for a choice or puts something off, as long as nobody has taken it up."""

    text: str
    turn: int
    seq: int
    is_note: bool = False  # the client noted it as the next step

    @property
    def is_question(self) -> bool:
        """Whether it asks the person something."""
        return self.text.rstrip("*_\"') ").endswith(("?", "？"))


def advance_loose_ends(
    known: Iterable[LooseEnd], turn: int, reply: str, words: Iterable[str], deeds: frozenset[str]
) -> tuple[LooseEnd, ...]:
    """Return what is left after one more turn, which begins with `reply`.

    A reply settles what the last answer put to the person, unless it asks or orders something else. `words` are those of the
    turn: what it asks for or reports was taken up. `deeds` names what was done with version control: `push`, `commit`, `pr`.
    Offers are forgotten after some turns; what was put off is not.
    """
    ends = [one for one in known if turn - one.turn <= _OFFER_TURNS or not (one.is_question or _is_put(one))]
    last = max((one.turn for one in ends), default=-1)
    said = frozenset().union(*map(_terms, words))
    answers = bool(reply) and not (asks_question(reply) or reply.startswith("/"))
    agrees = answers and bool(AGREEMENT.match(reply))
    settled = {
        one
        for one in ends
        if one.turn == last and (answers if one.is_question or one.is_note else agrees and _is_put(one))
    }
    return tuple(one for one in ends if one not in settled and not _is_taken_up(one, said, deeds))[-_MOST_LOOSE:]


def asks_question(text: str) -> bool:
    """Whether a prompt asks something, with or without a question mark."""
    return text.rstrip("*_\"') ").endswith(("?", "？")) or bool(_LOOK.match(text.lstrip()))


def _is_put(one: LooseEnd) -> bool:
    return bool(PUT_TO_PERSON.search(one.text))


def _is_taken_up(one: LooseEnd, said: frozenset[str], deeds: frozenset[str]) -> bool:
    terms = loose_terms(one.text)
    named = {name for name, sign in _DEED_NAMES.items() if sign.search(one.text)}
    if named & deeds and len(terms) <= _FEW_TERMS:
        return True
    return len(terms & said) >= max(min(len(terms), _COMMON_TERMS), _TAKEN_SHARE * len(terms))


def loose_terms(text: str) -> frozenset[str]:
    """Return the words of an offer that say what it is about."""
    return _terms(text) - _OFFER_TERMS


_OFFER_TURNS = 3
_FEW_TERMS = 4  # an offer with more is not only about version control
_MOST_LOOSE = 40
_TAKEN_SHARE = 0.5  # of the terms of a loose end that a turn which takes it up uses
_DEED_NAMES = {
    "push": lazy_pattern(r"\b(?:un)?push(?:ed|ing)?\b|\bgepusht\b|poussé|推送|プッシュ", re.IGNORECASE),
    "commit": lazy_pattern(r"\b(?:un)?commit(?:ted|ting)?\b|committet|コミット|提交", re.IGNORECASE),
    "pr": lazy_pattern(r"\bPRs?\b|\bpull requests?\b", re.IGNORECASE),
}
_OFFER_TERMS = frozenset(
    (
        "want know word need next step later future follow followup follow-up optional optionally you'd any anything something these those "
        "would like proceed adjust option issue change specific file further code any."
    ).split()
)


# --- topics ---
def is_other_topic(text: str, about: str) -> bool:
    """Whether a message asks for something that has nothing to do with what another was about, as far as their words tell."""
    topic = _topic_words(text)
    return len(topic) >= _FEW_TOPICS and not _GOES_ON.match(text) and topic.isdisjoint(_topic_words(about))


@lru_cache(maxsize=64)
def _topic_words(text: str) -> frozenset[str]:
    """Return the beginnings of the longer words of a text, and pairs of ideographs."""
    words = (word[:_STEM].lower() for word in _LONG_WORD.findall(text) if word.lower() not in _NO_TOPICS)
    pairs = (run[at : at + 2] for run in _IDEOGRAPHS.findall(text) for at in range(len(run) - 1))
    return frozenset((*words, *pairs))


_FEW_TOPICS, _STEM = 3, 6
_LONG_WORD = lazy_pattern(r"[A-Za-zÀ-ɏ]{4,40}")
_IDEOGRAPHS = lazy_pattern(r"[\u30a0-\u30ff\u4e00-\u9fff\uac00-\ud7af]{2,40}")
#: Messages that go on with the same work: questions, consent, committing and releasing it.
_GOES_ON = lazy_pattern(
    r"\W*(?:what|how|why|which|where|when|who|is|are|do|does|did|should|would|will|has|have|was|were|yes|yeah|yep|ok(?:ay)?|no|go|sure|continue|"
    r"proceed|commit|push|merge|release|deploy|publish|bump|tag|run|rerun|test|try|write a test|start|stop|undo|revert|<)\b", re.IGNORECASE,
)  # fmt: skip
#: Words that say nothing about the subject, and those of committing, reviewing and releasing any work.
_NO_TOPICS = frozenset(
    ("this that when with still have from they them then there where what which your just like only also into some does doesn isn seem seems better again error errors "
     "issue problem fails failed failing work working about after because here same show shows look looks need want please would could should made make makes well everything "
     "going else update updated change changes changed good great commit commits push merge merged branch main conflict conflicts regression regressions version versions "
     "release deploy review docs changelog readme test tests okay sure thanks think know").split()
)  # fmt: skip
