"""Key decisions: what the person answered or laid down, and what turns say was chosen.

The words are those of the session; every statement cites the messages it rests on.
"""

from __future__ import annotations

from collections.abc import Iterator

from everturn.derive.decision_states import DecisionState
from everturn.derive.intent import is_routine_request
from everturn.derive.marker_lines import ACTIVE
from everturn.restore.decided import ENDED, draft_decision, status_tail
from everturn.restore.evidence import (
    DraftStatement,
    StatementMaterial,
    fact_statement,
    rank_latest,
    safe_excerpt,
    weight_by_rank,
)

_REQUEST = 160
_CHOICE = 400


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
        done = " · ".join(f"{safe_excerpt(material, (one.seq, one.text), _CHOICE)}{status_tail(one)}" for one in told)
        return " → ".join(filter(None, (words, done)))

    return fact_statement(material, weight, text, cited)
