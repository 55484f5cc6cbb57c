"""False statements of a model: how many are shown as confirmed, and how many true ones are kept.

A scripted model answers over HTTP with the statements of `claims`, true and false ones mixed, and with those of
`tests.restore.museum` about a session in several languages. A statement is confirmed if the document shows it as verified in one of
its sections.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.figures import Figure
from benchmarks.processes import Failed
from benchmarks.restore.claims import KINDS, Claim, Story, claims, stories, take_in
from benchmarks.restore.rewordings import reworded_claims
from everturn.model.archive import Session
from everturn.restore.document import SECTIONS, Document
from everturn.restore.synthesis import restore_with_model
from everturn.store.contract import Store, open_store
from tests.model_server import Asked, ModelServer
from tests.model_wires import Says
from tests.restore.museum import FALSE, TRUE, museum
from tests.restore.shop import DONE, SOURCES, asker, options, purpose_of, turn_number

FALSE_BAR = 8
MUSEUM_BAR = 2
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
    """Ask the scripted model about every story, in two sets of wordings, and about a session in several languages."""
    yield from _set_figures("", trials(claims))
    yield from _set_figures("other wordings: ", trials(reworded_claims))
    yield from _set_figures("several languages: ", museum_trials(), MUSEUM_BAR)


def _set_figures(name: str, tried: list[tuple[Claim, bool]], bar: int = FALSE_BAR) -> Iterator[Figure]:
    false = [(claim, confirmed) for claim, confirmed in tried if claim.kind]
    true = [confirmed for claim, confirmed in tried if not claim.kind]
    by_kind = Counter(claim.kind for claim, confirmed in false if confirmed)
    told = ", ".join(f"{kind} {by_kind[kind]} of {sum(one.kind == kind for one, _ in false)}" for kind in KINDS)
    wrong = sum(confirmed for _, confirmed in false)
    yield Figure(f"{name}false statements shown as confirmed, of {len(false)}", wrong, "", bar, note=told)
    note = f"{sum(true)} of {len(true)}"
    yield Figure(f"{name}true statements kept as confirmed", sum(true) / len(true), "", TRUE_BAR, True, note)


def trials(write: Callable[[Story], list[Claim]]) -> list[tuple[Claim, bool]]:
    """Return every claim of a set, and whether its document confirms it."""
    return [one for story in stories() for one in _try_claims(write(story), partial(take_in, story=story))]


def museum_trials() -> list[tuple[Claim, bool]]:
    """Return every statement about the museum, and whether a document confirms it."""
    made = [
        _read_claim(line, kind) for kind, lines in (("", TRUE), *FALSE.items()) for line in lines.strip().splitlines()
    ]
    return _try_claims(made, museum)


def _read_claim(line: str, kind: str) -> Claim:
    section, _, sentence = line.partition("|")
    text, _, cite = sentence.removesuffix("]").rpartition(" [")
    return Claim(section, text, cite, kind)


def _try_claims(made: list[Claim], take: Callable[[Store, Path], Session]) -> list[tuple[Claim, bool]]:
    with tempfile.TemporaryDirectory(prefix="everturn-claims-") as folder:
        store = open_store("memory:")
        try:
            session = take(store, Path(folder) / "agent")
            with ModelServer(_Script(made)) as server:
                document = restore_with_model(store, SOURCES, session, asker(server), options(native_tools=False))
        finally:
            store.close()
    if not document.model:  # then nothing was tried
        raise Failed(f"the scripted model was not heard: {'; '.join(document.notes)}")
    return [(claim, is_confirmed(document, claim)) for claim in made]


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
    for claim, confirmed in (*trials(claims), *trials(reworded_claims), *museum_trials()):
        if confirmed == bool(claim.kind):
            yield json.dumps({"kind": claim.kind or "true", "section": claim.section, "text": claim.sentence})
