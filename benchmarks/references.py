"""Hints about words that point to something no longer in the window: how often right, how often for nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure
from benchmarks.labelled import PROMPTS, Labelled
from benchmarks.processes import ROOT, Place, everturn
from everturn.derive.references import find_reference, phrases_in
from everturn.model.archive import Session
from everturn.sessions.messages import read_messages
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store, open_store

REAL = ROOT.parent / "shared" / "corpus"
_LEFT_OUT = ("licences", "hooks", "terminal")  # no transcripts, or screens of those that are there already
_SHORT = 6
_PER_TEXT = 20_000  # characters of a message that stand in the window


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Our own prompts with what they should give; then real ones with all that came before them in the window."""
    yield from _own()
    transcripts = [folder for folder in sorted(REAL.glob("*")) if folder.is_dir() and folder.name not in _LEFT_OUT]
    if not transcripts:
        yield Figure("hints on real prompts", None, note="no transcripts in ../shared/corpus beside the checkout")
        return
    place = Place(corpora.folder / "prompts")
    everturn(place, "add", *map(str, transcripts), ok=(0, 4))
    with closing(open_store(str(place.db))) as store:
        yield from _real(store)


def _own() -> Iterator[Figure]:
    given = [(one, find_reference(one.prompt, one.window) is not None) for one in PROMPTS]
    hits = sum(hint and one.dangling for one, hint in given)
    hints = sum(hint for _, hint in given)
    wanted = sum(one.dangling for one in PROMPTS)
    by_words = [one for one in PROMPTS if phrases_in(one.prompt)]
    plain = sum(one.dangling for one in by_words) / len(by_words)
    yield Figure("hints that were right", hits / hints, "", 0.9, at_least=True, note=_misses(given, False))
    yield Figure("references that got a hint", hits / wanted, "", 0.85, at_least=True, note=_misses(given, True))
    yield Figure("right by the phrases alone", plain, note=f"{len(by_words)} of {len(PROMPTS)} prompts have one")


def _misses(given: list[tuple[Labelled, bool]], dangling: bool) -> str:
    wrong = [one.prompt for one, hint in given if hint != dangling and one.dangling == dangling]
    return f"{len(PROMPTS)} own prompts" + (f"; first wrong: {wrong[0][:60]}" if wrong else "")


def _real(store: Store) -> Iterator[Figure]:
    begun = time.process_time()
    prompts = phrases = opening = later = short = 0
    for session in _sessions(store):
        for prompt, window in _prompts(store, session):
            prompts += 1
            phrases += bool(phrases_in(prompt))
            opening += not window and find_reference(prompt, window) is not None
            later += bool(window) and find_reference(prompt, window) is not None
            short += bool(window) and find_reference(prompt, window[-_SHORT:]) is not None
    taken = (time.process_time() - begun) * 1000 / max(prompts, 1)
    note = f"{prompts} prompts, all before them in the window; {opening} of the hints on first prompts; {phrases} have a phrase"
    # Nothing has left the window, so every hint is one too many.
    yield Figure("hints for nothing", 100 * (opening + later) / max(prompts, 1), "%", 1, note=note)
    yield Figure(
        "hints in a short window", 100 * short / max(prompts, 1), "%", note=f"the last {_SHORT} texts; not judged"
    )
    yield Figure("CPU of a prompt", taken, "ms", note="reading the session and both windows included")


def _sessions(store: Store) -> Iterator[Session]:
    after = ""
    while True:
        page, after = store.sessions(SessionFilter(), 500, after)
        yield from (session for session, _ in page)
        if not after:
            return


def _prompts(store: Store, session: Session) -> Iterator[tuple[str, list[str]]]:
    """Every human prompt of a session with the texts in front of it."""
    window: list[str] = []
    for row, message in read_messages(store, all_sources(), session):
        texts = [block.text[:_PER_TEXT] for block in message.blocks if block.text]
        if row.origin == "human" and row.kind in ("text", "queued"):
            said = "\n".join(block.text for block in message.blocks if block.field == "prompt")
            if said:
                yield said, window
        window += texts
