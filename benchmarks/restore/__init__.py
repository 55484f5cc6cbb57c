"""Does a restored document say what happened, and what comes next? Without a model, within 4,000 tokens.

Four parts, each alone with `python -m benchmarks.restore --part`:

- `sections`: every section against what readers marked in 119 sessions (`labels`, `match`).
- `model`: false statements of a scripted model, and how many of them are shown as confirmed (`claims`, `trial`).
- `cpu`: what restoring costs (`effort`).
- `cut`: sessions of the corpus with ten turns or more, cut at three fifths. The document is made from the first part. What it must
  name is read from the raw records by other code (`truth`).

Two more sets are measured by commands of their own, with a folder that holds their sessions: `python -m benchmarks.restore.ends` (`aside.json`) and
`python -m benchmarks.restore.unseen` (`unseen.json`, `opened.json` and `whole.json`, every section).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.corpora import Corpora
from benchmarks.figures import Figure
from benchmarks.restore import citations, compactions, constraints, measuring
from benchmarks.restore.cutting import CORPUS, Cut, archive, cuts
from benchmarks.restore.effort import effort_figure
from benchmarks.restore.labels import HALVES, archive_labelled
from benchmarks.restore.measuring import Score, total
from benchmarks.restore.sections import section_figures
from everturn.store.contract import Store

BUDGET = 4_000
_TIMES = 5  # the CPU of a small recording is measured so often


PARTS = ("sections", "model", "cpu", "cut")
MISSING = f"there is no corpus at {CORPUS}"


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Everything that is measured here."""
    for name in PARTS:
        yield from part_figures(name, corpora.folder / "restore")


def part_figures(name: str, folder: Path, halves: tuple[str, ...] = HALVES) -> Iterator[Figure]:
    """Measure one part. All but `model` need the corpus."""
    if name != "model" and not CORPUS.is_dir():
        yield Figure(f"restore, {name}", None, note=MISSING)
    elif name == "sections":
        yield from _of_labels(folder, halves)
    elif name == "model":
        from benchmarks.restore.trial import trial_figures

        yield from trial_figures()
    elif name == "cpu":
        yield effort_figure(folder)
    else:
        yield from _of_cuts(folder)


def _of_labels(folder: Path, halves: tuple[str, ...]) -> Iterator[Figure]:
    store = archive_labelled(folder, halves)
    try:
        yield from section_figures(store, halves)
    finally:
        store.close()


def _of_cuts(folder: Path) -> Iterator[Figure]:
    store = archive(folder)
    try:
        cut = [one for one in cuts(store) if one.calls]
        documents = [(one, _document(one)) for one in cut]
        yield from _of_first_part(documents)
        yield _of_the_rest(documents)
        yield from _constraints(store)
        yield citations.figure(store)
        yield from _compactions(store)
    finally:
        store.close()
    yield _recordings()


def _document(cut: Cut) -> str:
    from everturn.restore.markdown import document_markdown
    from everturn.restore.mechanical import build_document
    from everturn.sources.contract import all_sources

    return document_markdown(build_document(cut.store, all_sources(), cut.session, cut.turns - 1), str, BUDGET)


def _of_first_part(documents: list[tuple[Cut, str]]) -> Iterator[Figure]:
    measures: dict[str, Callable[[Cut, str], Score]] = {
        "edited files": lambda cut, text: measuring.edited_files(text, cut.before),
        "still failing commands": lambda cut, text: measuring.failing_commands(
            text, cut.before, [call.command for call in cut.calls if call.command]
        ),
        "commits": lambda cut, text: measuring.commits(text, cut.before),
        "open plan items": lambda cut, text: measuring.open_items(text, cut.before),
    }
    for name, measure in measures.items():
        score = total([measure(cut, text) for cut, text in documents])
        note = f"{len(documents)} sessions, {score.all:.0f} in all, weighed by use"
        yield Figure(f"{name}, recall", score.recall, "", 0.9, True, note)
        yield Figure(f"{name}, precision", score.precision, "", 0.9, True, f"{score.listed:.0f} listed")


def _of_the_rest(documents: list[tuple[Cut, str]]) -> Figure:
    score = total([measuring.files_to_come(text, cut) for cut, text in documents])
    note = f"{score.all:.0f} touches of files that had appeared before"
    return Figure("files that the rest touches, named", score.recall, "", 0.85, True, note)


def _constraints(store: Store) -> Iterator[Figure]:
    """Without bars: the set the rules were fitted on says little, and the one that was held out is small."""
    from everturn.restore.mechanical import build_document
    from everturn.sources.contract import all_sources

    for name, held_out in (("held out", True), ("fitted on", False)):
        made = [
            constraints.score(build_document(store, all_sources(), session), marked)
            for session, marked in constraints.labelled(store, held_out)
        ]
        score = total(made)
        note = f"{len(made)} sessions labelled by hand, {score.all:.0f} sentences"
        yield Figure(f"constraints, {name}, recall", score.recall, "", note=note)
        yield Figure(f"constraints, {name}, precision", score.precision, "", note=f"{score.listed:.0f} listed")


def _compactions(store: Store) -> Iterator[Figure]:
    made = list(compactions.comparisons(store))
    theirs, ours = total([one.theirs for one in made]), total([one.ours for one in made])
    tokens = sum(one.tokens for one in made) // max(1, len(made))
    yield Figure(
        "named by the clients' own summaries", theirs.recall, "", note=f"{len(made)}, {tokens:,} tokens on average"
    )
    yield Figure("named by ours at the same places", ours.recall, "", theirs.recall, True, "must be more")


def _recordings() -> Figure:
    """The CPU of reading recordings of terminals and restoring them, beside that of reading alone."""
    paths = sorted(path for path in (CORPUS / "terminal").iterdir() if path.is_file())
    reading = sum(_cpu(path, restore=False) for path in paths)
    both = sum(_cpu(path, restore=True) for path in paths)
    note = f"{len(paths)} recordings, {reading * 1000 / _TIMES:.0f} ms of CPU to read"
    return Figure("restoring a recording / reading it", both / reading, "×", 3, note=note)


def _cpu(path: Path, restore: bool) -> float:
    from everturn.capture.intake import SyncJob
    from everturn.capture.policy import Policy
    from everturn.restore.job import find_target
    from everturn.restore.markdown import document_markdown
    from everturn.restore.mechanical import build_document
    from everturn.sources.contract import SearchPlaces, all_sources

    places, sources = SearchPlaces(Path("/nowhere"), {}, "linux"), all_sources()
    used = 0.0
    for number in range(_TIMES + 1):
        begun = time.process_time()
        found = find_target(
            str(path), None, lambda into: SyncJob(into, sources, places, Policy(), "here", "me", lambda: 0)
        )
        if restore:
            document_markdown(build_document(found.store, sources, found.session), str, BUDGET)
        found.store.close()
        spent = time.process_time() - begun
        used = used + spent if number else 0.0  # the first one also imports
    return used
