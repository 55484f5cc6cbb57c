"""Turn by turn with a model: its TURN SUMMARY of each turn, every entry checked like a statement of a document.

An entry that cites nothing is held against its own turn. What does not hold is shown with the reason instead of a
citation. A turn that the model did not summarise is told from its facts, so that no turn is missing.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from everturn.llm.asking import Asker
from everturn.model.archive import Session
from everturn.recall.reading import Sources
from everturn.restore.checking import check_sentence
from everturn.restore.citations import read_citations
from everturn.restore.document import read_material
from everturn.restore.grounds import Ground
from everturn.restore.proof import Proofs
from everturn.restore.replies import TurnSummary
from everturn.restore.summaries import Progress, RestoreOptions, summarise_turns
from everturn.restore.synthesis import skipped_notes
from everturn.restore.turns import FIELDS, TurnEntry, TurnReport, tell_turn
from everturn.store import Store

#: The section whose rules hold for a field; others have none of their own.
_RULES = {"constraints": "constraints", "state_changes": "key_decisions"}


class TurnReports(Struct, frozen=True):
    """All turns, and what a reader must know about them."""

    turns: tuple[TurnReport, ...]
    notes: tuple[str, ...] = ()


def report_turns(
    store: Store,
    sources: Sources,
    session: Session,
    asker: Asker,
    options: RestoreOptions | None = None,
    progress: Progress = lambda done, total: None,
) -> TurnReports:
    """The turns of a session as a model tells them."""
    options = options or RestoreOptions()
    facts = read_material(store, sources, session, options.last, keep_facts=True)
    summaries = summarise_turns(store, sources, session, asker, options, progress)
    ground = Ground(store, sources, session, facts.state, options.clean)
    by_model = {one.turn: one for one in summaries.turns}
    workspace, proofs = store.session(session.id)[1].workspace, Proofs(store, sources, session)
    turns = (
        _report_turn(ground, by_model[one.turn]) if one.turn in by_model else tell_turn(one, workspace, proofs)
        for one in facts.facts
    )
    return TurnReports(tuple(turns), tuple(skipped_notes(summaries)))


def _report_turn(ground: Ground, summary: TurnSummary) -> TurnReport:
    return TurnReport(
        summary.turn, {key: tuple(_check_entries(ground, summary, key)) for key in FIELDS if key != "turn"}
    )


def _check_entries(ground: Ground, summary: TurnSummary, key: str) -> Iterator[TurnEntry]:
    value = getattr(summary, key) or ()
    for sentence in (value,) if isinstance(value, str) else value:
        placed = sentence if read_citations(sentence).citations else f"{sentence} [t{summary.turn + 1}]"
        checked = check_sentence(ground, _RULES.get(key, ""), placed)
        one = checked.statement
        if checked.holds and one.evidence:
            yield TurnEntry(one.text, one.evidence[0].message)
        else:
            yield TurnEntry(f"{one.text} (unverified: {one.reason})")
