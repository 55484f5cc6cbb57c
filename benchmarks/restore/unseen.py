"""`python -m benchmarks.restore.unseen FOLDER`: every section of a document, of sessions that nobody has learnt from.

`unseen.json` holds 21 sessions of 21 repositories that are neither in the corpus nor in `labels.json`, `sentences.json`, `units.json`, `turns.json` or `aside.json`.
Two readers listed, from the transcript alone, what a note for an agent that continues the session should hold. A third one then paired
their points by reading: two are one point if a person who hands over would write one line for them, so a point may have
places in several messages. A point that both named and one of them was sure of is firm. One that a single reader named, or that both
doubted (`AB?`), is doubtful. The readers named the messages that state the goal; the third chose the words there.

The format is that of `labels.json`, with the part `unseen`. Open points stand under `next_steps`, questions to the person under `open_questions`.
A `commands` of a failure is the command at its place. `from` names the repository, the blob and the path of the session. FOLDER holds it
under `file`; sessions that are not there are left out.

**Nobody may make a rule from this set, nor choose a threshold by it.** It was measured about fifteen times while thresholds were set on 19 November 2026, so it flatters them a little. What is wrong and missing is not listed. `--opened` allows it, for
the day on which the set is opened for development: from then on its figures say nothing about sessions that nobody has seen.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.figures import Figure, say, show
from benchmarks.restore.labels import UNSEEN_HALF
from benchmarks.restore.learn import archive_files
from benchmarks.restore.sections import SECTIONS, restored_sessions, section_figures, session_misses
from everturn.store.contract import Store

UNSEEN = Path(__file__).with_name("unseen.json")


def main(arguments: list[str] | None = None) -> int:
    """Print the figures of the sessions found below a folder; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore.unseen", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder that holds the sessions")
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument(
        "--misses", choices=SECTIONS, metavar="SECTION", help="list what is wrong and missing; only with --opened"
    )
    parser.add_argument("--opened", action="store_true", help="the set has been opened for development")
    options = parser.parse_args(arguments)
    if options.misses and not options.opened:
        parser.error("this set is only measured; nobody looks at what is wrong in it")
    folder, missed = options.folder.resolve(), 0
    with tempfile.TemporaryDirectory(prefix="everturn-unseen-") as archive:
        if options.misses:
            for line in unseen_misses(folder, Path(archive), options.misses):
                print(line)
            return 0
        for figure in unseen_figures(folder, Path(archive)):
            show(figure, options.json)
            missed += figure.verdict == "FAIL"
    say(f"{missed or 'no'} bars missed")
    return 1 if missed else 0


def unseen_figures(folder: Path, archive: Path, unseen: Path = UNSEEN) -> Iterator[Figure]:
    """Yield every figure of the sessions below a folder, with the bars of the sections."""
    store = _archived(folder, archive, unseen)
    try:
        yield from section_figures(store, (UNSEEN_HALF,), unseen, folder)
    finally:
        store.close()


def unseen_misses(folder: Path, archive: Path, name: str, unseen: Path = UNSEEN) -> Iterator[str]:
    """Yield what is wrong and missing in a section. Not before the set is opened."""
    store = _archived(folder, archive, unseen)
    try:
        yield from session_misses(restored_sessions(store, (UNSEEN_HALF,), unseen, folder), name)
    finally:
        store.close()


def _archived(folder: Path, archive: Path, unseen: Path) -> Store:
    files = {folder / one["file"] for one in json.loads(unseen.read_text("utf-8"))}
    if absent := sum(not path.exists() for path in files):
        say(f"{absent} sessions are not in the folder")
    return archive_files(files, archive)


if __name__ == "__main__":
    sys.exit(main())
