"""What was decided: the statements of key decisions.

The words are those of the session; every statement cites the messages it rests on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from everturn.derive.intent import is_routine_request
from everturn.derive.marker_lines import ACTIVE
from everturn.derive.session_state import DecisionState
from everturn.restore.evidence import (
    DraftStatement,
    StatementMaterial,
    fact_statement,
    rank_latest,
    safe_excerpt,
    saying_statement,
    weight_by_rank,
)
from everturn.text.printable import one_line

_ASKED = 300
_REQUEST = 160
_CHOICE = 400
_STATUS_WORDS = {"rejected": "taken back"}
ENDED = 20  # weight of what was decided and no longer holds


def key_decisions(material: StatementMaterial) -> Iterator[DraftStatement]:
    """What was decided: one entry for an answer or a sentence of the person, one for each turn that changed files.

    Commits have a section of their own.
    """
    state = material.state
    by_turn: dict[int, list[DecisionState]] = {}
    for one in state.choices:
        by_turn.setdefault(one.turn, []).append(one)
    told = [
        one for one in state.decisions if one.kind != "commit" and not (one.kind == "choice" and one.turn in by_turn)
    ]
    entries: list[DecisionState | list[DecisionState]] = sorted(
        (*told, *by_turn.values()), key=lambda one: one[-1].seq if isinstance(one, list) else one.seq
    )
    for rank, entry in rank_latest(entries):
        weight = weight_by_rank(66, rank, 30)
        if isinstance(entry, list):
            yield _draft_choices(material, entry, weight)
        else:
            yield draft_decision(material, entry, weight if entry.status == ACTIVE else ENDED)


def draft_decision(material: StatementMaterial, one: DecisionState, weight: float) -> DraftStatement:
    """Draft one decision or rule, with the question it answers and what became of it."""
    if one.about:
        return fact_statement(
            material,
            weight,
            _answer_text(material, one),
            [(one.seq, one.text.partition(": ")[0]), (one.about_seq, one.about)],
        )
    label = one.kind if one.kind == "pin" else ""
    return saying_statement(material, weight, (one.seq, one.text), tail=_status_tail(one), label=label)


def _draft_choices(material: StatementMaterial, choices: list[DecisionState], weight: float) -> DraftStatement:
    """Draft what a turn asked for, and what it says of how that was done."""
    turn = choices[0].turn
    asked = next((one for one in material.state.requests if one.turn == turn and one.starter == "human"), None)
    asked = None if asked is not None and is_routine_request(asked.wants or asked.text) else asked
    words = safe_excerpt(material, (asked.seq, asked.wants or asked.text), _REQUEST) if asked else ""
    told = [one for one in choices if one.text not in words]
    if not told:  # the request itself settles it
        asked, words, told = None, "", choices
    refs = {one.seq: one.text for one in reversed(told)}  # the first passage of each message
    cited = [(asked.seq, asked.wants or asked.text)] if asked else []
    cited += [(seq, refs[seq]) for seq in sorted(refs) if not asked or seq != asked.seq]

    def text() -> str:
        done = " · ".join(f"{safe_excerpt(material, (one.seq, one.text), _CHOICE)}{_status_tail(one)}" for one in told)
        return " → ".join(filter(None, (words, done)))

    return fact_statement(material, weight, text, cited)


def _status_tail(one: DecisionState) -> str:
    """Say what became of a decision."""
    return "" if one.status == ACTIVE else f" ({_STATUS_WORDS.get(one.status, one.status)} later)"


def _answer_text(material: StatementMaterial, one: DecisionState) -> Callable[[], str]:
    """Return the question of the agent with the answer of the person."""
    tail = _status_tail(one)
    return lambda: f"{safe_excerpt(material, (one.about_seq, one.about), _ASKED)} → {one_line(one.text, _ASKED)}{tail}"
