"""`python -m benchmarks.restore.unseen FOLDER`: every section of a document, of sessions that are not in the corpus.

Readers listed, from the transcript alone, what a note for an agent that continues the session should hold (`UNITS.md`, *Whole
sessions*). There are three sets, none of which shares a repository with another one or with the corpus:

- `unseen`: 13 sessions of 9 repositories, most of them not in English, collected and read in the night to 20 November 2026 while nobody
  looked at documents of them. **Nobody may make a rule from this set, nor choose a threshold by it.** What is wrong and missing is not listed.
- `opened`: 87 sessions of 72 repositories: five sets, each of which was unseen until rules were made from it; the last 29 since that night. Its figures say nothing
  about sessions that nobody has seen.
- `whole`: 72 sessions of 72 repositories that `units.json` and `turns.json` were learnt from, open for development. One reader each.

Of the first two the points of two readers were paired: by a third reader, who took two for one point if a person who hands over would write one
line for them, or, in the newest sessions, by a program (`pair`). So a point may have places in several messages. A point that both named and one of them was sure of is firm. One that a single
reader named, or that both doubted (`AB?`), is doubtful. In `whole` a point is firm if its reader was sure of it.

The format is that of `labels.json`. Open points stand under `next_steps`, questions to the person under `open_questions`. A `commands` of a
failure is the command at its place. `from` names the repository, the blob and the path of the session. FOLDER holds it under `file`;
sessions that are not there are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, say, show
from benchmarks.restore.labels import MEASURED, NAMED, SETS, SPOKEN, UNSEEN_HALF
from benchmarks.restore.learn import archive_files
from benchmarks.restore.sections import SECTIONS, restored_sessions, section_figures, session_misses
from everturn.store.contract import Store


def main(arguments: list[str] | None = None) -> int:
    """Print the figures of the sessions found below a folder; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.restore.unseen",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="the folder that holds the sessions")
    parser.add_argument("--set", choices=SETS, default=UNSEEN_HALF, help="which sessions; `unseen` if not given")
    parser.add_argument(
        "--last",
        type=int,
        metavar="N",
        help="only the last N sessions: nothing was learnt from the last 29 of `opened`",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument(
        "--misses", choices=SECTIONS, metavar="SECTION", help="list what is wrong and missing; not of `unseen`"
    )
    options = parser.parse_args(arguments)
    if options.misses and options.set in MEASURED:
        parser.error("this set is only measured; nobody looks at what is wrong in it")
    folder, missed = options.folder.resolve(), 0
    with tempfile.TemporaryDirectory(prefix="everturn-unseen-") as archive:
        labels = SETS[options.set] if options.last is None else _last_labels(SETS[options.set], options.last, archive)
        if options.misses:
            for line in unseen_misses(folder, Path(archive), options.misses, labels):
                print(line)
            return 0
        for figure in unseen_figures(folder, Path(archive), labels):
            show(figure, options.json)
            missed += figure.verdict == "FAIL"
    say(f"{missed or 'no'} bars missed")
    return 1 if missed else 0


def _last_labels(labels: Path, number: int, folder: str) -> Path:
    """Write the last sessions of a set into a file of their own."""
    kept = Path(folder) / "labels.json"
    kept.write_text(json.dumps(json.loads(labels.read_text("utf-8"))[-number:]), "utf-8")
    return kept


def unseen_figures(folder: Path, archive: Path, labels: Path) -> Iterator[Figure]:
    """Yield every figure of the sessions below a folder, with the bars of the sections."""
    yield from agreement_figures(labels)
    store = _archived(folder, archive, labels)
    try:
        yield from section_figures(store, _parts(labels), labels, folder)
    finally:
        store.close()


def agreement_figures(labels: Path) -> Iterator[Figure]:
    """Yield how far the two readers of a set agree on the points of each section: the F1 of one list held against the other."""
    entries = json.loads(labels.read_text("utf-8"))
    for name in (*SPOKEN, *NAMED):
        readers = Counter(item["readers"].rstrip("?") for one in entries for item in one["sections"][name])
        both, alone = 2 * readers["AB"], readers["A"] + readers["B"]
        if both:
            yield Figure(f"{name.replace('_', ' ')}, F1 of one reader against the other", both / (both + alone))


def unseen_misses(folder: Path, archive: Path, name: str, labels: Path) -> Iterator[str]:
    """Yield what is wrong and missing in a section. Not before a set is opened."""
    store = _archived(folder, archive, labels)
    try:
        yield from session_misses(restored_sessions(store, _parts(labels), labels, folder), name)
    finally:
        store.close()


def _archived(folder: Path, archive: Path, labels: Path) -> Store:
    files = {folder / one["file"] for one in json.loads(labels.read_text("utf-8"))}
    if absent := sum(not path.exists() for path in files):
        say(f"{absent} sessions are not in the folder")
    return archive_files(files, archive)


def _parts(labels: Path) -> tuple[str, ...]:
    return tuple(sorted({one["half"] for one in json.loads(labels.read_text("utf-8"))}))


if __name__ == "__main__":
    sys.exit(main())
