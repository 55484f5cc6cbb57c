"""`python -m benchmarks.restore.real_claims FILE FOLDER`: statements that readers wrote about real sessions, true and false.

FILE is a JSON list of `{"file", "half", "statements": [{"section", "text", "cite", "kind"}]}`. `file` is a session below FOLDER,
`kind` what a false statement gets wrong (`claims.KINDS`), "" for a true one. The statements were written by reading the session,
before anybody looked at what the checks say of them. They describe other people's sessions, so the file is no part of the project.

The true statements of a session make one summary and the false ones another, so that neither unmasks the other. They are checked
and shown as those of `--part model`. A statement counts as confirmed if the document shows it as verified in one of its sections.
What is not stands under "Unverified" with a reason: as not checked, which may be true, or as contradicted, which must not be.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from msgspec import json as msgspec_json

from benchmarks.figures import Figure, show
from benchmarks.restore.claims import KINDS, Claim
from benchmarks.restore.trial import TRUE_BAR, is_confirmed, summary_text
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.restore.document import CONTRADICTED, Document
from everturn.restore.grounds import Ground
from everturn.restore.job import find_target
from everturn.restore.mechanical import document_from_state
from everturn.restore.prompts import session_summary
from everturn.restore.synthesis import merge_documents, weigh_statements
from everturn.sessions.state import session_state
from everturn.sources.contract import SearchPlaces, all_sources

FALSE_BAR = 0.1  # share of the false statements


class SessionClaims(Struct, frozen=True):
    """What a reader stated about one session."""

    file: str
    half: str
    statements: list[Claim]


class ClaimTrial(Struct, frozen=True):
    """A statement, the word and the reason that the document shows, and whether it counts as confirmed."""

    claim: Claim
    check: str
    reason: str
    confirmed: bool


def try_session(path: Path, made: list[Claim]) -> Iterator[ClaimTrial]:
    """Check the statements about the session of a file."""
    sources = all_sources()
    places = SearchPlaces(Path("/nowhere"), {}, "linux")
    found = find_target(str(path), None, lambda into: SyncJob(into, sources, places, Policy(), "here", "me", lambda: 0))
    try:
        state = session_state(found.store, sources, found.session)
        ground = Ground(found.store, sources, found.session, state, str)
        document = document_from_state(found.store, sources, found.session, state)
        for claims in ([one for one in made if not one.kind], [one for one in made if one.kind]):
            yield from _try_summary(ground, document, claims)
    finally:
        found.store.close()


def _try_summary(ground: Ground, document: Document, claims: list[Claim]) -> Iterator[ClaimTrial]:
    summary = session_summary(summary_text(claims))
    assert summary is not None
    checked = weigh_statements(ground, summary)
    shown = merge_documents(document, checked)
    by_text = {one.statement.text: one.statement for entries in checked.values() for one in entries}
    for claim in claims:
        statement = by_text[" ".join(claim.text.split())]
        yield ClaimTrial(claim, statement.check, statement.reason, is_confirmed(shown, claim))


def claim_figures(tried: list[ClaimTrial], name: str) -> Iterator[Figure]:
    """Yield how many false statements are confirmed and how many true ones are kept."""
    false = [one for one in tried if one.claim.kind]
    true = [one for one in tried if not one.claim.kind]
    wrong = [one for one in false if one.confirmed]
    told = ", ".join(
        f"{kind} {sum(one.claim.kind == kind for one in wrong)} of {sum(one.claim.kind == kind for one in false)}"
        for kind in KINDS
    )
    kept = sum(one.confirmed for one in true)
    refuted = sum(one.check == CONTRADICTED for one in true)
    note = f"{len(wrong)} of {len(false)}: {told}"
    yield Figure(
        f"{name}: false statements shown as confirmed", len(wrong) / max(1, len(false)), "", FALSE_BAR, note=note
    )
    yield Figure(
        f"{name}: true statements confirmed", kept / max(1, len(true)), "", TRUE_BAR, True, f"{kept} of {len(true)}"
    )
    note = f"{refuted} of {len(true)} are called contradicted"
    yield Figure(
        f"{name}: true statements shown, not called wrong", 1 - refuted / max(1, len(true)), "", TRUE_BAR, True, note
    )


def main(arguments: list[str] | None = None) -> int:
    """Print the figures of each half; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.restore.real_claims",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="the statements")
    parser.add_argument("folder", type=Path, help="the folder that holds the sessions")
    parser.add_argument("--half", action="append", help="only this half; may be given several times")
    parser.add_argument("--misses", action="store_true", help="list what is wrong, with the reason")
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    options = parser.parse_args(arguments)
    sessions = msgspec_json.decode(options.file.read_bytes(), type=list[SessionClaims])
    missed = False
    for half in options.half or sorted({one.half for one in sessions}):
        tried = [
            trial
            for one in sessions
            if one.half == half
            for trial in try_session(options.folder / one.file, one.statements)
        ]
        for figure in claim_figures(tried, half):
            show(figure, options.json)
            missed = missed or figure.verdict == "FAIL"
        for one in tried if options.misses else ():
            if one.confirmed == bool(one.claim.kind):
                told = {"kind": one.claim.kind or "true", "text": one.claim.sentence, "check": one.check}
                print(json.dumps({**told, "reason": one.reason}, ensure_ascii=False))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
