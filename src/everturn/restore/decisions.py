"""Key decisions and constraints: what the person answered or laid down, and what turns say was chosen.

The words are those of the session; every statement cites the messages it rests on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.choices import PlacedChoice, choice_odds, choice_size, says_same
from everturn.derive.decision_states import DecisionState
from everturn.derive.decisions import likeness
from everturn.derive.intent import topic_words
from everturn.derive.marker_lines import ACTIVE
from everturn.derive.session_state import SessionState
from everturn.restore.evidence import (
    DraftStatement,
    StatementMaterial,
    fact_statement,
    rank_latest,
    safe_excerpt,
    saying_statement,
    weight_by_rank,
)
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.printable import one_line

_ANSWERED = 300
_STATUS_WORDS = {"rejected": "taken back"}
ENDED = 20  #: weight of what was decided and no longer holds
_RULES = 1_400
_ASKED = 240  # cells of a question
_CHOICE = 400  # of a passage
_POINTS = lazy_pattern(r"\d{1,2}\. [^\n]{1,200} / \d{1,2}\. ")  # numbered questions that a reply answers
#: A letter, a number or an option in words, alone or before what it stands for.
_OPTION_TAKEN = lazy_pattern(
    r"\W*(?:\d{1,2}|[A-Ha-h])(?!\w)|[^:：]{0,60}\b(?:option|choice|approach|plan|variante?|opción|opção|lösung)\b|[^:：]{0,24}(?:方案|选项|选择|案|オプション)",
    re.IGNORECASE,
)


def key_decisions(material: StatementMaterial) -> Iterator[DraftStatement]:
    """What was decided: one entry for each turn, and one for each answer in a form or sentence that lays something down.

    Commits have a section of their own.
    """
    likely = _find_entries(material.state)
    room = min(_MOST_ROOM, max(_LEAST_ROOM, _ALL_ROOM // max(1, len(likely))))
    entries = [_thin_entry(one, room) for one in likely]
    for rank, entry in enumerate(sorted(entries, key=lambda one: -one.odds)):
        weight = weight_by_rank(66, rank, 30)
        if entry.passages:
            yield _draft_entry(material, entry, weight)
        elif entry.told is not None:
            yield draft_decision(material, entry.told, weight if entry.told.status == ACTIVE else ENDED)


class DecisionEntry(Struct, frozen=True):
    """What one turn decided: the answer that it begins with or a sentence of the person, and what it says was chosen."""

    told: DecisionState | None
    passages: tuple[DecisionState, ...] = ()
    odds: float = 0.0  # of its likeliest passage


def _find_entries(state: SessionState) -> list[DecisionEntry]:
    """Return the entries in their order. A reply and the choices of its turn are one; choices that no longer hold are left out."""
    by_turn: dict[int, list[DecisionState]] = {}
    for one in _leave_last([one for one in _rate_choices(state) if one.status == ACTIVE and one.weight >= _BESIDE]):
        by_turn.setdefault(one.turn, []).append(one)
    stated = {turn for turn, passages in by_turn.items() if _odds_of_any(passages) >= _LIKELY}
    told = [
        one for one in state.decisions if one.kind != "commit" and not (one.kind == "choice" and one.turn in stated)
    ]
    entries = [_make_entry(one, by_turn.pop(one.turn, []) if one.about else []) for one in told]
    kept = [one for one in entries if one.passages or not _says_little(one.told)]
    kept += [_make_entry(None, passages) for turn, passages in by_turn.items() if turn in stated]
    return sorted(kept, key=lambda one: max(part.seq for part in (one.told, *one.passages) if part is not None))


def _rate_choices(state: SessionState) -> list[DecisionState]:
    """Return the choices of a session, each with the log-odds that it is one."""
    placed = [PlacedChoice(one.text, one.turn, one.weight, one.by == "person", one.denied) for one in state.choices]
    asked = ((one.turn, one.text) for one in state.requests if one.starter == "human")
    odds = choice_odds(placed, asked, state.turn_count)
    return [replace(one, weight=weight) for one, weight in zip(state.choices, odds, strict=True)]


def _leave_last(choices: list[DecisionState]) -> list[DecisionState]:
    """Return the choices without those that a later turn states again, maybe with another value: the last one stands."""
    kept = list[tuple[DecisionState, frozenset[str]]]()
    saying = dict[str, list[int]]()  # which of them say a word
    for one in reversed(choices):
        words = topic_words(one.text)
        beside = {at for word in words for at in saying.get(word, ())[-_COMPARED:]}
        if not any(kept[at][0].turn > one.turn and says_same(words, kept[at][1]) for at in beside):
            for word in words:
                saying.setdefault(word, []).append(len(kept))
            kept.append((one, words))
    return [one for one, _ in reversed(kept)]


_COMPARED = 12  # passages with a word that another one is compared with


def _odds_of_any(passages: Iterable[DecisionState]) -> float:
    """Return the log-odds that at least one of some passages states what was chosen."""
    none = math.prod(1 / (1 + math.exp(one.weight)) for one in passages)
    return math.log((1 - none) / none) if 0 < none < 1 else 0.0


def _make_entry(told: DecisionState | None, passages: list[DecisionState]) -> DecisionEntry:
    """Return what a turn decided. What answers the agent is decided, whatever else is said of it, and its words are not told twice."""
    passages = _without_requests(passages)
    if told is None:
        return DecisionEntry(None, tuple(passages), _odds_of_any(passages))
    said = (likeness(told.text), likeness(told.about))
    left = tuple(
        one for one in passages if one.weight >= _BESIDE and not any(likeness(one.text) in part for part in said)
    )
    return DecisionEntry(told, left, _TOLD)


def _without_requests(passages: list[DecisionState]) -> list[DecisionState]:
    """Return the passages of a turn without those of its request that the agent says again: requests have a section of their own."""
    said = frozenset[str]().union(*(topic_words(one.text) for one in passages if one.by == "agent"))
    return [one for one in passages if one.by == "agent" or not _is_said(topic_words(one.text), said)]


def _is_said(words: frozenset[str], said: frozenset[str]) -> bool:
    return len(words & said) > _SAID_SHARE * len(words)


_SAID_SHARE = 0.5  # of the words of a request
_TOLD = 0.0  # log-odds of what a person answered or laid down


def _thin_entry(entry: DecisionEntry, room: int) -> DecisionEntry:
    """Return an entry with its likeliest passages that fit into so many bytes, at least one: of many turns each tells less."""
    kept = list[DecisionState]()
    for one in sorted(entry.passages, key=lambda one: -one.weight):
        if not kept or (choice_size(one.text) <= room and len(kept) < _MOST):
            kept.append(one)
            room -= choice_size(one.text)
    return replace(entry, passages=tuple(one for one in entry.passages if one in kept))


_LIKELY, _BESIDE = -0.6, -2.9  # log-odds that one passage of an entry is a decision, and those that each needs
_MOST = 12  # passages of an entry
_ALL_ROOM, _MOST_ROOM, _LEAST_ROOM = 8_000, 2_000, 600  # bytes of all passages, and of those of an entry


def _says_little(one: DecisionState | None) -> bool:
    """Whether a reply settles nothing by itself: it neither takes an option nor fills in a form.

    What it lets the agent do next is told by what its turn says was chosen; if that is nothing, it was routine.
    """
    return one is not None and one.kind in ("agreement", "answer") and bool(one.about) and not _takes_option(one)


def _takes_option(one: DecisionState) -> bool:
    """Whether a reply names one of several options, or answers numbered questions one by one."""
    return (_OPTION_TAKEN.match(one.text) or _POINTS.match(one.about)) is not None


def _draft_entry(material: StatementMaterial, entry: DecisionEntry, weight: float) -> DraftStatement:
    """Draft the reply with which a turn begins, and what the turn says was chosen."""
    told = entry.told
    refs = [(told.seq, told.text.partition(": ")[0]), (told.about_seq, told.about)] if told is not None else []
    first = {one.seq: one.text for one in reversed(entry.passages)}  # the first passage of each message
    refs += [(seq, first[seq]) for seq in sorted(first)]

    def text() -> str:
        chosen = " · ".join(safe_excerpt(material, (one.seq, one.text), _CHOICE) for one in entry.passages)
        return " → ".join(filter(None, (answer_text(material, told, _ASKED) if told is not None else "", chosen)))

    return fact_statement(material, weight, text, refs)


# --- constraints ---
def constraints(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Instructions of a person that hold from then on; those of one message in one entry, which cites the messages that repeat them."""
    entries: dict[int, list[DecisionState]] = {}
    told = material.state.constraints
    for number, one in enumerate(told):
        is_listed = one.status == ACTIVE and not one.pinned
        entries.setdefault(one.seq if is_listed else -2 - number, []).append(one)
    for rank, entry in rank_latest(list(entries.values())):
        weight = 95 if entry[0].pinned else weight_by_rank(84, rank, 55)
        weight = _FILE_WEIGHT if entry[0].kind == "file" else weight
        if entry[0].status != ACTIVE:
            yield draft_decision(material, entry[0], ENDED)
        elif len(entry) > 1 or entry[0].again or entry[0].kind == "file":
            yield _draft_rules(material, entry, weight)
        else:
            yield draft_decision(material, entry[0], weight)


_FROM_FILE, _FILE_WEIGHT = " (from the project's instruction file)", 45


def _draft_rules(material: StatementMaterial, entry: list[DecisionState], weight: float) -> DraftStatement:
    text = one_line(" · ".join(one.text for one in entry), _RULES)
    tail = _FROM_FILE if entry[0].kind == "file" else ""
    again = {seq: one.text for one in entry for seq in one.again}
    cited = [(entry[0].seq, text), *sorted(again.items())]
    label = entry[0].kind if entry[0].kind == "pin" else ""
    return fact_statement(material, weight, lambda: f"{safe_excerpt(material, cited[0], _RULES)}{tail}", cited, label)


# --- one decision or rule ---
def draft_decision(material: StatementMaterial, one: DecisionState, weight: float) -> DraftStatement:
    """Draft one decision or rule, with the question it answers and what became of it."""
    if one.about:
        return fact_statement(
            material,
            weight,
            lambda: answer_text(material, one),
            [(one.seq, one.text.partition(": ")[0]), (one.about_seq, one.about)],
        )
    label = one.kind if one.kind == "pin" else ""
    return saying_statement(material, weight, (one.seq, one.text), tail=status_tail(one), label=label)


def status_tail(one: DecisionState) -> str:
    """Say what became of a decision."""
    return "" if one.status == ACTIVE else f" ({_STATUS_WORDS.get(one.status, one.status)} later)"


def answer_text(material: StatementMaterial, one: DecisionState, width: int = _ANSWERED) -> str:
    """Return the question of the agent with the answer of the person."""
    question = safe_excerpt(material, (one.about_seq, one.about), width)
    return f"{question} → {one_line(one.text, _ANSWERED)}{status_tail(one)}"
