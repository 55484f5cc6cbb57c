"""What a person laid down that holds from then on: the statements of constraints.

The words are those of the session; every statement cites the messages it rests on.
"""

from __future__ import annotations

from collections.abc import Iterator

from everturn.derive.decision_states import DecisionState
from everturn.derive.marker_lines import ACTIVE
from everturn.restore.decided import ENDED, draft_decision
from everturn.restore.evidence import (
    DraftStatement,
    StatementMaterial,
    fact_statement,
    rank_latest,
    safe_excerpt,
    weight_by_rank,
)
from everturn.text.printable import one_line

_RULES = 1_400


def constraints(material: StatementMaterial) -> Iterator[DraftStatement]:
    """Instructions of a person that hold from then on; those of one message in one entry, which cites the messages that repeat them."""
    entries: dict[int, list[DecisionState]] = {}
    for number, one in enumerate(material.state.constraints):
        is_listed = one.status == ACTIVE and not one.pinned
        entries.setdefault(one.seq if is_listed else -2 - number, []).append(one)
    for rank, entry in rank_latest(list(entries.values())):
        weight = 95 if entry[0].pinned else weight_by_rank(84, rank, 55)
        if entry[0].status != ACTIVE:
            yield draft_decision(material, entry[0], ENDED)
        elif len(entry) > 1 or entry[0].again:
            yield _draft_rules(material, entry, weight)
        else:
            yield draft_decision(material, entry[0], weight)


def _draft_rules(material: StatementMaterial, entry: list[DecisionState], weight: float) -> DraftStatement:
    text = one_line(" · ".join(one.text for one in entry), _RULES)
    again = {seq: one.text for one in entry for seq in one.again}
    cited = [(entry[0].seq, text), *sorted(again.items())]
    label = entry[0].kind if entry[0].kind == "pin" else ""
    return fact_statement(material, weight, lambda: safe_excerpt(material, cited[0], _RULES), cited, label)
