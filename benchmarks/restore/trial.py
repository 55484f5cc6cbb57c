"""False statements of a model: how many are shown as confirmed, and how many true ones are kept.

A scripted model answers over HTTP with the statements of `claims`, true and false ones mixed. A statement is confirmed if the
document shows it as verified in one of its sections.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.processes import Failed
from benchmarks.restore.claims import KINDS, Claim, Story, claims, stories, take_in
from benchmarks.restore.rewordings import reworded_claims
from everturn.restore.document import SECTIONS, Document
from everturn.restore.synthesis import restore_with_model
from everturn.store.contract import open_store
from tests.model_server import Asked, ModelServer
from tests.model_wires import Says
from tests.restore.shop import DONE, SOURCES, asker, options, purpose_of, turn_number

FALSE_BAR = 8
TRUE_BAR = 0.95
_TURN = """TURN SUMMARY

Turn number: {0}
User request summary: The user asked for the work of this turn [t{0}]
Agent response summary: The agent did the work of this turn [t{0}]
Key outcomes: The work of this turn was done [t{0}]
State changes: None
Artifacts modified: None
Constraints/assumptions added: None
Open questions after this turn: None"""


def trial_figures() -> Iterator[Figure]:
    """Ask the scripted model about every story, in two sets of wordings."""
    yield from _set_figures("", trials(claims))
    yield from _set_figures("other wordings: ", trials(reworded_claims))


def _set_figures(name: str, tried: list[tuple[Claim, bool]]) -> Iterator[Figure]:
    false = [(claim, confirmed) for claim, confirmed in tried if claim.kind]
    true = [confirmed for claim, confirmed in tried if not claim.kind]
    by_kind = Counter(claim.kind for claim, confirmed in false if confirmed)
    told = ", ".join(f"{kind} {by_kind[kind]} of {sum(one.kind == kind for one, _ in false)}" for kind in KINDS)
    wrong = sum(confirmed for _, confirmed in false)
    yield Figure(f"{name}false statements shown as confirmed, of {len(false)}", wrong, "", FALSE_BAR, note=told)
    note = f"{sum(true)} of {len(true)}"
    yield Figure(f"{name}true statements kept as confirmed", sum(true) / len(true), "", TRUE_BAR, True, note)


def trials(write: Callable[[Story], list[Claim]]) -> list[tuple[Claim, bool]]:
    """Return every claim of a set, and whether its document confirms it."""
    found = []
    for story in stories():
        made = write(story)
        with tempfile.TemporaryDirectory(prefix="everturn-claims-") as folder:
            store = open_store("memory:")
            try:
                session = take_in(store, Path(folder) / "agent", story)
                with ModelServer(_Script(made)) as server:
                    document = restore_with_model(store, SOURCES, session, asker(server), options(native_tools=False))
            finally:
                store.close()
        if not document.model:  # then nothing was tried
            raise Failed(f"the scripted model was not heard: {'; '.join(document.notes)}")
        found += [(claim, is_confirmed(document, claim)) for claim in made]
    return found


class _Script:
    """A model that says what it is given to say."""

    def __init__(self, made: list[Claim]) -> None:
        self._summary = summary_text(made)

    def __call__(self, asked: Asked) -> Says:
        purpose = purpose_of(asked)
        if purpose == "turn":
            return Says(_TURN.format(turn_number(asked)))
        return DONE if purpose == "evidence" else Says(self._summary)


def summary_text(made: list[Claim]) -> str:
    """Write a SESSION SUMMARY that holds the claims."""
    lines = ["SESSION SUMMARY", ""]
    for key, heading in SECTIONS.items():
        lines.append(f"{heading}:")
        lines += [f"- {one.sentence}" for one in made if one.section == key]
    return "\n".join(lines) + "\n"


def is_confirmed(document: Document, claim: Claim) -> bool:
    """Whether a document shows a claim of the model as a fact."""
    wanted = _bare(claim.text)
    shown = (one for section in document.sections for one in section.statements if one.verified)
    return any(one.label == "model" and _bare(one.text) == wanted for one in shown)


def _bare(text: str) -> str:
    return "".join(text.lower().split()).rstrip(".")


def listed() -> Iterator[str]:
    """Yield each false statement that was confirmed and each true one that was not."""
    for claim, confirmed in (*trials(claims), *trials(reworded_claims)):
        if confirmed == bool(claim.kind):
            yield json.dumps({"kind": claim.kind or "true", "section": claim.section, "text": claim.sentence})
