"""Statements of a model that contradict each other, or that tell what the record lists as still to be done.

Two statements contradict each other if they speak of the same object and one says that it is done, passes or is to be, the other
that it is put off, fails or is not to be; or if they name different choices for it ("Redis for tokens", "PostgreSQL for tokens").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from msgspec import Struct

from everturn.restore.claim_language import find_language
from everturn.restore.claim_polarity import Phrase, find_denied_choice, find_opposite, is_denied, read_phrases
from everturn.restore.grounds import all_stems, stems
from everturn.text.stance_words import CONDITION, STILL_TO

_LEAST_COMMON = 0.6  # share of the words of the shorter one that two statements about one object have in common

_STATES = {
    "done": r"implemented|completed?|finished|done|added|built|shipped|merged|fixed|resolved|solved|passes|passed|passing|green|works|enabled|umgesetzt|erledigt|fertig|implementad\w+|terminad\w+|implémentée?s?|terminée?s?|funcionan?|funktioniert|fonctionnent?|funciona|実装済|完了|実装し|已实现|已完成",
    "open": r"deferred|postponed|skipped|abandoned|dropped|pending|unfinished|incomplete|left out|put off|shelved|on hold|outstanding|not (?:yet )?(?:implemented|done|finished|started|complete|fixed|added|built)|still (?:open|missing|to do|fails?|failing|broken)"
    r"|fails|failed|failing|broken|red|missing|disabled|unresolved|todo|verschoben|zurückgestellt|offen|aplazad\w+|pospuest\w+|pendiente|reportée?s?|延期|保留|見送|未実装|推迟|搁置|未完成",
}
_STATE_PATTERNS = {
    key: re.compile(rf"\b(?:{words})\b|(?:{words})(?<=[^\x00-\x7f])", re.I) for key, words in _STATES.items()
}
_ITEM = re.compile(r"\s*(?:[-*•]|\d{1,2}[.)])\s+")
_TO_DO = re.compile(
    r"\b(?:next (?:steps?|tasks?)|to[- ]?do|remaining|outstanding|still (?:open|to do|missing)|open (?:points|items|tasks)|not (?:yet )?(?:done|implemented)|offene?|nächste\w*|ausstehend\w*"
    r"|prochaines?|à faire|reste|próxim[oa]s?|pendientes?|pendentes?|por hacer)\b|次の|残り|残タスク|未対応|未実装|下一步|待办|待完成|未完成|剩余",
    re.I,
)
_LONGEST_HEADING = 60  # characters
_ADJECTIVE = re.compile(r"\b(?:failing|failed|broken|missing)\s+(?=\w+)", re.I)
_TOLD = re.compile(r"\b(?:first|initially|originally|at first|earlier|previously|formerly|used to|then|later|until|before|after|instead of|rather than|zuerst|zunächst|d['’]abord|primero)\b|最初", re.I)  # fmt: skip
_CHOICE = (
    re.compile(r"\b(?:us(?:e|es|ed|ing)|ch(?:oo|o)se[ns]?|picked|selected|decided on|settled on|go(?:es)? with|went with|prefers?|adopt(?:s|ed)?|take|switch(?:ed)? to)\s+(?P<what>[^,;.]{2,50}?)\s+(?:for|as|in|to (?:store|keep|handle|hold))\s+(?P<of>[^,;.]{2,60})", re.I),
    re.compile(r"(?P<of>[^,;.]{2,60}?)\s+(?:is|are|was|were|stays?|lives?|goe?s?|remains?|will be|be)?\s*(?:kept|stored|saved|held|written|put|placed|cached|done|handled|built|implemented|stay|live|go|remain)?\s*(?:in|with|on|by|using|to|as)\s+(?P<what>[^,;.]{2,50})", re.I),
    re.compile(r"\b(?:keep|store|save|hold|write|put|place|cache|build|implement|handle)s?\s+(?P<of>[^,;.]{2,60}?)\s+(?:in|with|on|by|using|to|as)\s+(?P<what>[^,;.]{2,50})", re.I),
)  # fmt: skip


class StatementParts(Struct, frozen=True):
    """The parts by which two statements are compared."""

    object: frozenset[str]
    state: str
    phrases: tuple[Phrase, ...]
    choices: tuple[tuple[frozenset[str], frozenset[str]], ...]  # (what for, what)
    is_told: bool  # tells how it came about
    language: str


def find_conflicts(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of statements that contradict each other."""
    parts = [_read_parts(text) for text in texts]
    for one, other in combinations(range(len(parts)), 2):
        if parts[one].object & parts[other].object and _contradict(parts[one], parts[other]):
            yield one, other


def has_other_state(text: str, sentence: str) -> bool:
    """Whether a sentence of the record says of the same object that it is put off, and the statement that it is done, or vice versa."""
    if {find_state(text), find_state(sentence)} != {"done", "open"} or _TOLD.search(text) or _TOLD.search(sentence):
        return False
    one, other = _read_parts(text), _read_parts(sentence)
    return len(one.object & other.object) >= _LEAST_COMMON * max(1, len(one.object))


def find_open_item(text: str, spoken: str) -> str:
    """Return the item of a list of what is still to be done that a statement says is done; "" if there is none."""
    about, is_open = _read_parts(text).object, False
    for line in spoken.splitlines():
        if not (item := _ITEM.match(line)):
            is_open = bool(_TO_DO.search(line)) and len(line) <= _LONGEST_HEADING
        elif is_open and about and len(about & stems(line)) >= _LEAST_COMMON * min(len(about), len(stems(line))):
            return line[item.end() :].strip()
    return ""


def find_state(text: str) -> str:
    """Return whether a text says that something is done or open; "" if neither."""
    bare = _ADJECTIVE.sub("", text)
    return next((key for key in ("open", "done") if _STATE_PATTERNS[key].search(bare)), "")


def find_told_state(text: str) -> str:
    """Return the state that a text tells, but as a condition or as what is denied; "" if none."""
    bare = _ADJECTIVE.sub("", text)
    for key in ("open", "done"):
        if match := _STATE_PATTERNS[key].search(bare):
            before = bare[: match.start()]
            return "" if CONDITION.search(before) or STILL_TO.search(before) or is_denied(before, bare) else key
    return ""


def hide_state(text: str) -> str:
    """Blank out the words that say that something is done or open."""
    text = _ADJECTIVE.sub("", text)
    for pattern in _STATE_PATTERNS.values():
        text = pattern.sub(" ", text)
    return text


def _read_parts(text: str) -> StatementParts:
    return StatementParts(
        stems(hide_state(text)),
        find_state(text),
        read_phrases(text),
        tuple(_find_choices(text)),
        bool(_TOLD.search(text)),
        find_language(text),
    )


def _find_choices(text: str) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    for clause in re.split(r"[;.]\s|, not\b", text):
        for pattern in _CHOICE:
            if match := pattern.search(clause):
                of, what = all_stems(match["of"]) - _CHOICE_WORDS, all_stems(match["what"]) - _CHOICE_WORDS
                if of and what:
                    yield of, what
                    break


_CHOICE_WORDS = all_stems("keep kept keeps store stored stores save saved use used uses using write written hold held put place stay stays live lives")  # fmt: skip


def _contradict(one: StatementParts, other: StatementParts) -> bool:
    if one.is_told or other.is_told or (one.language and other.language and one.language != other.language):
        return False
    common = len(one.object & other.object) / min(len(one.object), len(other.object))
    if {one.state, other.state} == {"done", "open"} and common >= _LEAST_COMMON:
        return True
    if one.state or other.state:
        return False
    if common >= _LEAST_COMMON and (
        find_opposite(one.phrases, other.phrases) is not None or find_opposite(other.phrases, one.phrases) is not None
    ):
        return True
    if find_denied_choice(one.phrases, other.phrases) or find_denied_choice(other.phrases, one.phrases):
        return True
    return any(of == also and not what & instead for of, what in one.choices for also, instead in other.choices)
