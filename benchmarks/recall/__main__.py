"""`python -m benchmarks.recall`: how well things are found. Exits with 1 when a bar is missed."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.figures import Figure, say, show
from benchmarks.processes import Failed
from benchmarks.recall.meanings import Model
from benchmarks.recall.measuring import OURS, Answered
from benchmarks.recall.report import figures_of, rows
from benchmarks.recall.sets import PARTS, SETS, measured, part_figures, parts_for


def main() -> int:
    """Measure the sets asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=__doc__)
    parser.add_argument(
        "--set", choices=(*SETS, *PARTS), action="append", help="only this one; may be given several times"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per number, of every method")
    parser.add_argument(
        "--misses", type=int, default=0, metavar="N", help="also N questions whose session is not first"
    )
    parser.add_argument(
        "--meaning", metavar="MODEL", help="also with vectors of a model on this machine: name, folder, or static"
    )
    parser.add_argument("--dimensions", type=int, default=384, metavar="N", help="with --meaning: numbers of a vector")
    parser.add_argument("--weights", default="0.5", metavar="W,W", help="with --meaning: how much it counts")
    options = parser.parse_args()
    weights = tuple(map(float, options.weights.split(",")))
    model = Model(options.meaning, options.dimensions, weights) if options.meaning else None
    begun = time.process_time()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="everturn-recall-") as folder:
        for name in options.set or (*SETS, *PARTS):
            try:
                missed += _run(name, Path(folder), model, options)
            except Failed as failure:
                show(Figure(name, None, note=str(failure)), options.json)
                missed += 1
    say(f"{time.process_time() - begun:.0f} CPU s; {missed or 'no'} bars missed")
    return 1 if missed else 0


def _run(name: str, folder: Path, model: Model | None, options: argparse.Namespace) -> int:
    """Print a set or a part; how many bars it missed."""
    if name in PARTS:
        figures = _shown(part_figures(name, folder), options.json)
        return sum(figure.verdict == "FAIL" for figure in figures)
    missed = 0
    for told, answers in measured(name, folder, model):
        missed += _show(told, answers, options.json)
        for line in misses(told, answers[OURS], options.misses):
            say(line)
    return missed


def _shown(figures: Iterator[Figure], as_json: bool) -> list[Figure]:
    """Print figures as they come."""
    found = []
    for figure in figures:
        show(figure, as_json)
        found.append(figure)
    return found


def _show(told: str, answers: dict[str, list[Answered]], as_json: bool) -> int:
    measured = list(rows(told, answers))
    for row in measured if as_json else ():
        print(json.dumps({**asdict(row), "verdict": row.verdict}, ensure_ascii=False), flush=True)
    figures: Iterator[Figure] = iter(()) if as_json else figures_of(measured)
    for figure in (*figures, *parts_for(told, answers)):
        show(figure, as_json)
    return sum(row.verdict == "FAIL" for row in measured)


def misses(told: str, answers: list[Answered], wanted: int) -> Iterator[str]:
    """The first that went wrong, with the place where the right session stands. Refused for the half that is held back."""
    if wanted > 0 and told.startswith("own held"):
        yield f"{told}: misses are not shown; this half is held back"
        return
    wrong = [one for one in answers if one.sessions["hit@1"] == 0]
    for one in wrong[: max(wanted, 0)]:
        places = list(dict.fromkeys(session for session, _ in one.places))
        at = next((number for number, session in enumerate(places, 1) if session in one.question.sessions), None)
        yield f"{one.question.group}: {one.question.text}\n    right at {at or 'nowhere'}; first {one.places[:1]}"


if __name__ == "__main__":
    sys.exit(main())
