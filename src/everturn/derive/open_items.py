"""Find what a session leaves open: questions, offers and steps of an answer, work that was announced, what was put off, and findings.

Which sentences of an answer count is decided in `derive.open_sentences`. `find_summary_steps` reads the steps in a
summary of the client. Plans are read in `derive.plans`. Never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.intent import loose_terms
from everturn.derive.offers import Answered
from everturn.derive.open_sentences import LONGEST_LIST, WeighedSentence, choose_open, is_question, weigh_sentences
from everturn.model.conversation import CallStart
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line
from everturn.text.sentences import Sentence, split_sentences
from everturn.text.stance_words import (
    AT_ONCE,
    BEGUN,
    CONDITION,
    DONE_WITH,
    LASTING,
    MILD_OFFER,
    NAMED_CHOICE,
    NEXT_STEP,
    NOT_RELEASED,
    OFFERED,
    PUT_OFF,
    REPORTS_DONE,
    SERVICE_STOPS,
)

_LONGEST = 200
_END = 700  # characters at the end of an answer
_STEPS = 8
_WORDS = 4  # a finding with fewer words says nothing
_STEPS_READ = 2_000  # characters at the end of an answer that can name steps
_SENTENCE = 300  # characters of a step
_FEW = 3  # sentences before a call
_LAST = 3  # sentences that are shown, and terms of an offer
_QUESTIONS = 3
_MOST = 8  # offers of an answer
_OFFERS = 1_200  # characters at the end in which an offer counts

_ITEM = lazy_pattern(r"^[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+(?:\[.\][ \t]+)?(\S.{0,2000})$")


_SUMMARY_HEADING = lazy_pattern(
    r"^[ \t]*(?:\d{1,2}[.)][ \t]+)?(?:#{1,6}[ \t]+|\*\*|__)?(?:\d{1,2}[.)][ \t]+)?(?:pending(?: tasks?)?|(?:optional )?next steps?|remaining(?: work| tasks)?|open items|todo)"
    r"(?:\*\*|__)?:?(?:\*\*|__)?[ \t]*$",
    re.IGNORECASE | re.MULTILINE,
)
_SUMMARY_NEXT = lazy_pattern(
    r"(?:^|(?<=[.!;]\s))\W{0,4}(?:next(?: step| action| up)?|still to do|remaining)\W{0,3}:[ \t]+(\S[^\n]{3,400}?)(?=\.\s|\.?$|\s\()",
    re.IGNORECASE | re.MULTILINE,
)
_NOTHING = lazy_pattern(r"(?:none|nothing|n/a|keine|aucune?|ninguna?|なし|无)\b", re.IGNORECASE)


# --- what an answer leaves open ---
def find_closing_questions(text: str) -> list[str]:
    """Return the questions that an answer leaves open."""
    return [one_line(one, _LONGEST) for one, asks in _open_sentences(text) if asks][-_QUESTIONS:]


def find_next_steps(text: str) -> list[str]:
    """Return the steps that an answer leaves to do."""
    return [one_line(one, _SENTENCE) for one, asks in _open_sentences(text) if not asks]


def find_lasting_offers(text: str) -> list[str]:
    """Return what an answer offers, asks or leaves for later: it stays open until somebody takes it up.

    Its words must say so, and its weights speak clearly for it. What is left to commit, push or merge counts too.
    """
    found, below = list[str](), 0
    for one, weighed in reversed(weigh_sentences(text)):
        below += len(one.text)
        if below > _OFFERS:
            break
        words, asks = one.text.lstrip("*_ "), one.asks or is_question(one.text)
        lasts = (
            OFFERED.search(words)
            if asks
            else (NEXT_STEP.match(words) or LASTING.search(words) or NOT_RELEASED.search(words))
        )
        is_mild = asks or bool(MILD_OFFER.search(words))
        least = _LAST if is_mild and not NAMED_CHOICE.search(words) else 1
        is_clear = weighed.odds >= _LASTS and not words.rstrip("*_ ").endswith((":", "："))
        if lasts and is_clear and len(loose_terms(words)) >= least and not DONE_WITH.search(words):
            found.append(one_line(_with_mark(one), _SENTENCE))
    return list(dict.fromkeys(reversed(found)))[:_MOST]


_LASTS = 1.5  # log-odds of a sentence that stays open when the next request does not speak of it


@lru_cache(maxsize=2)
def _open_sentences(text: str) -> tuple[tuple[str, bool], ...]:
    """Return the likeliest sentences of an answer that leave something open, in order, as they are shown, and whether each asks."""
    return tuple(dict.fromkeys(_told(text, weigh_sentences(text))))


def _told(text: str, weighed: Sequence[tuple[Sentence, WeighedSentence]]) -> Iterator[tuple[str, bool]]:
    """Yield the sentences of an answer that count as they are shown, and whether each asks.

    A numbered heading is the subject of what stands below it, and what is below a line with a colon is its content. A
    heading alone is left out, and so is a line of few words with a colon.
    """
    subject, chosen = "", choose_open([one for _, one in weighed])
    for at in chosen:
        one, odds = weighed[at]
        if odds.is_question:
            yield _with_mark(one), True
            continue
        is_heading, is_numbered = one.passage.strip("*_: ") == one.heading, _NUMBERED.match(one.heading) is not None
        words = one.heading if is_heading and is_numbered else one.text
        if words.rstrip("*_ ").endswith((":", "：")):
            words = _with_content(text, words, (below for below, _ in weighed[at + 1 :]), at + 1 in chosen)
        if not words or (is_heading and not is_numbered) or (is_heading and one.heading == subject):
            continue
        if is_numbered and not is_heading and one.heading != subject:
            words = f"{one_line(one.heading, _SUBJECT)}: {words}"
        subject = one.heading
        yield words, False


def _with_mark(one: Sentence) -> str:
    return f"{one.text}？" if one.asks else one.text


def _with_content(text: str, lead: str, below: Iterable[Sentence], is_chosen: bool) -> str:
    """Return a line that ends in a colon with the code below it, or with the list below it if no item of that was chosen."""
    at = text.find(lead)
    if at >= 0 and (code := _CODE_BELOW.match(text, at + len(lead))):
        return f"{lead} {one_line(code[1], _SUBJECT)}"
    items = [one.passage for one in takewhile(lambda one: one.is_item, below)]
    if is_chosen or not 0 < len(items) <= LONGEST_LIST:
        return lead if is_chosen or len(loose_terms(lead)) >= _LAST else ""
    return f"{lead} {' / '.join(one_line(one, _CLAUSE) for one in dict.fromkeys(items))}"


_SUBJECT, _CLAUSE = 160, 80  # characters of a heading or a command, and of each item below a line
_NUMBERED = lazy_pattern(r"#?\d{1,2}[.):]\s")
_CODE_BELOW = lazy_pattern(r"[*_ \t]{0,4}\n\s{0,8}(?:```|~~~)[^\n]{0,40}\n\s{0,40}(\S[^`]{1,600})")


# --- the end of an answer ---
def is_no_answer(text: str) -> bool:
    """Whether a text stands in the place of an answer: a note that it was interrupted, or a command that is kept as text."""
    return _NO_ANSWER.match(text) is not None


_NO_ANSWER = lazy_pattern(
    r"\s*(?:\[(?:response|request) interrupted\b[^\]]{0,200}\]|(?:cancell?ed|aborted)\b\W{0,3}|```(?:bash|sh|shell|zsh|console|powershell)\n(?:(?!```).)*```)\s*$",
    re.IGNORECASE | re.DOTALL,
)


def find_progress(text: str) -> str:
    """Return the heading in which a text ends, as a client shows what is being done: `**Running tests**`; "" if it ends otherwise."""
    found = _PROGRESS.search(text[-_LONGEST:])
    return one_line(found[1], _LONGEST) if found else ""


_PROGRESS = lazy_pattern(r"\*\*([A-Z][a-z]{2,20}ing\b[^*\n]{2,120})\*\*\s*$")


def find_service_stop(text: str) -> str:
    """Return the line of a client's notice that says that the service of the model stopped: a limit, a login; "" if there is none."""
    found = SERVICE_STOPS.search(text[:_STEPS_READ])
    return one_line(found[0], _LONGEST) if found else ""


def find_begun(text: str, is_running: bool = False) -> str:
    """Return the sentence with which an answer announces the calls after it, "" if it announces none.

    A single sentence before a call says what the call is for, however it is worded, and so does the last of a few if the call
    was still running at the end.
    """
    if progress := find_progress(text):
        return progress
    sentences = list(split_sentences(text[-_END:]))
    words = sentences[-1].text.lstrip("*_ ") if sentences else ""
    asks = is_question(words) or any(one.asks for one in sentences[-1:])
    is_alone = len(sentences) <= (_FEW if is_running and not asks else 1) and not REPORTS_DONE.match(words)
    is_said = any(one.isalpha() for one in words)
    return one_line(sentences[-1].text, _LONGEST) if is_said and (is_alone or BEGUN.match(words)) else ""


def find_announced(text: str) -> str:
    """Return the last sentence of an answer if it announces work that should follow at once."""
    if progress := find_progress(text):
        return progress
    sentences = [one.text for one in split_sentences(text[-_END:])]
    words = sentences[-1].lstrip("*_ ") if sentences else ""
    is_short = len(sentences) == 1 and BEGUN.match(words) is not None and not CONDITION.search(words)
    return one_line(words, _LONGEST) if (is_short or AT_ONCE.match(words)) and not words.endswith("?") else ""


def find_summary_steps(text: str) -> list[str]:
    """Return the steps that a summary of the client leaves to do."""
    found = [one_line(one[1], _LONGEST) for one in _SUMMARY_NEXT.finditer(text)][-1:]
    for heading in _SUMMARY_HEADING.finditer(text):
        found += [one for one in _list_items(text[heading.end() :]) if not _NOTHING.match(one.lstrip("*_ "))]
    return list(dict.fromkeys(found))[:_STEPS]


class Question(Struct, frozen=True):
    """A question to the human, and the turn of the next human message."""

    text: str
    turn: int
    seq: int
    answered_by: int | None = None


def advance_questions(
    known: tuple[Question, ...], asked: Iterable[tuple[str, int]], written: list[int], turn: int
) -> tuple[Question, ...]:
    """Return the questions after one more turn; `written` are the messages of the human in it."""
    if written:
        known = tuple(one if one.answered_by is not None else replace(one, answered_by=turn) for one in known)
    last = max(written, default=-1)  # answers the questions of calls before it
    return (*known, *(Question(text, turn, seq, turn if seq < last else None) for text, seq in asked))


def find_call_questions(start: CallStart) -> list[str]:
    """Return the questions of a call to the human."""
    given: Any = start.input
    if isinstance(given, str):
        return [one_line(given, _LONGEST)] if given.strip() else []
    if not isinstance(given, dict):
        return []
    listed = given.get("questions")
    items = listed if isinstance(listed, list) else [given]
    found = []
    for item in items[:10]:
        words = item if isinstance(item, str) else _question_text(item) if isinstance(item, dict) else ""
        if words.strip():
            found.append(one_line(words, _LONGEST))
    return found


def find_put_off(text: str) -> list[str]:
    """Return the sentences in which a person puts something off."""
    if not PUT_OFF.search(text):
        return []
    spoken = (one.text for one in split_sentences(text) if not one.pasted and len(one.text) <= _SENTENCE)
    return [one_line(words, _SENTENCE) for words in spoken if PUT_OFF.search(words) and not is_question(words)][:_LAST]


def find_findings(text: str) -> list[str]:
    """Return what a review proposes: for each heading that announces it, the passages below as one text."""
    found = []
    for heading in _FINDINGS.finditer(text):
        below = text[heading.end() :][:_FINDINGS_READ]
        level = len(heading[1] or "") or 7
        end = next((one.start() for one in _ANY_HEADING.finditer(below) if len(one[1]) <= level), len(below))
        passages = dict.fromkeys(
            one.passage for one in split_sentences(below[:end]) if len(one.passage.split()) >= _WORDS
        )
        if passages:
            found.append(one_line(" · ".join(passages), _FINDINGS_SHOWN))
    return found[:_LAST]


#: A heading under which a review says what should change.
_FINDINGS = lazy_pattern(
    r"^[ \t]*(?:(#{1,6})[ \t]+|\*\*)[^\n*]{0,60}?\b(?:improvements?|recommend\w*|suggest\w*|findings?|issues?|concerns?|gaps?|weaknesses|problems?|should (?:fix|change)|plan|proposed \w+|"
    r"empfehlung\w*|verbesserung\w*|probleme?|améliorations?|recommandations?|problèmes?|mejoras?|recomendacion\w*|problemas?)\b[^\n]{0,60}$"
    r"|^[ \t]*#{1,6}[ \t]+[^\n]{0,30}(?:改善|提案|問題|指摘|建议|改进|问题)[^\n]{0,30}$",
    re.IGNORECASE | re.MULTILINE,
)
_ANY_HEADING = lazy_pattern(r"^(#{1,6})[ \t]+", re.MULTILINE)
_FINDINGS_READ, _FINDINGS_SHOWN = 4_000, 1_000


def _question_text(item: dict[str, Any]) -> str:
    return next(
        (item[name] for name in ("question", "text", "prompt", "message") if isinstance(item.get(name), str)), ""
    )


def _list_items(text: str) -> list[str]:
    """Return the items of the list at the beginning, or else the first line."""
    found: list[str] = []
    for line in text.strip("\n").splitlines():
        item = _ITEM.match(line)
        if found and item and _NEXT_PART.match(item[1]):
            break
        if item:
            found.append(one_line(item[1], _LONGEST))
        elif found and line.strip() and not line.startswith((" ", "\t")):
            break
        elif not found and line.strip():
            return [one_line(line, _LONGEST)]
        if len(found) == _STEPS:
            break
    return found


#: A bold heading with a colon and nothing behind it: the next part of a numbered summary.
_NEXT_PART = lazy_pattern(r"\*\*[^*\n]{1,80}(?::\*\*|\*\*:)\s*$")


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
