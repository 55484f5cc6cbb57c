"""How one decision or rule is written: with the question it answers and what became of it.

The words are those of the session; every statement cites the messages it rests on.
"""

from __future__ import annotations

from everturn.derive.decision_states import DecisionState
from everturn.derive.marker_lines import ACTIVE
from everturn.restore.evidence import (
    DraftStatement,
    StatementMaterial,
    fact_statement,
    safe_excerpt,
    saying_statement,
)
from everturn.text.printable import one_line

_ASKED = 300
_STATUS_WORDS = {"rejected": "taken back"}
ENDED = 20  #: weight of what was decided and no longer holds


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


def answer_text(material: StatementMaterial, one: DecisionState, width: int = _ASKED) -> str:
    """Return the question of the agent with the answer of the person."""
    question = safe_excerpt(material, (one.about_seq, one.about), width)
    return f"{question} → {one_line(one.text, _ASKED)}{status_tail(one)}"
