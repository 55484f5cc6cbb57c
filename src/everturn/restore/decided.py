"""What holds from then on: the statements of constraints, and of a single decision.

The words are those of the session; every statement cites the messages it rests on.
"""

from __future__ import annotations

from collections.abc import Iterator

from everturn.derive.decision_states import DecisionState
from everturn.derive.marker_lines import ACTIVE
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
_RULES = 1_400
_STATUS_WORDS = {"rejected": "taken back"}
ENDED = 20  #: weight of what was decided and no longer holds


def constraints(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Instructions of a person that hold from then on; those of one message in one entry."""
    entries: dict[int, list[DecisionState]] = {}
    for number, one in enumerate(material.state.constraints):
        is_listed = one.status == ACTIVE and not one.pinned
        entries.setdefault(one.seq if is_listed else -2 - number, []).append(one)
    for rank, entry in rank_latest(list(entries.values())):
        weight = 95 if entry[0].pinned else weight_by_rank(84, rank, 55)
        if len(entry) > 1:
            text = one_line(" · ".join(one.text for one in entry), _RULES)
            yield saying_statement(material, weight, (entry[0].seq, text), width=_RULES)
        else:
            yield draft_decision(material, entry[0], weight if entry[0].status == ACTIVE else ENDED)


def draft_decision(material: StatementMaterial, one: DecisionState, weight: float) -> DraftStatement:
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


def answer_text(material: StatementMaterial, one: DecisionState, width: int = _ASKED) -> str:
    """Return the question of the agent with the answer of the person."""
    question = safe_excerpt(material, (one.about_seq, one.about), width)
    return f"{question} → {one_line(one.text, _ASKED)}{status_tail(one)}"
