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
from benchmarks.recall.meanings import Model
from benchmarks.recall.measuring import OURS, Answered
from benchmarks.recall.report import figures_of, rows
from benchmarks.recall.sets import SETS, measured, parts_for


def main() -> int:
    """Measure the sets asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=__doc__)
    parser.add_argument("--set", choices=SETS, action="append", help="only this one; may be given several times")
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
        for name in options.set or SETS:
            for told, answers in measured(name, Path(folder), model):
                missed += _show(told, answers, options.json)
                for line in _misses(answers[OURS], options.misses):
                    say(line)
    say(f"{time.process_time() - begun:.0f} CPU s; {missed or 'no'} bars missed")
    return 1 if missed else 0


def _show(told: str, answers: dict[str, list[Answered]], as_json: bool) -> int:
    figures: list[Figure] = list(figures_of(told, answers))
    for row in rows(told, answers) if as_json else ():
        print(json.dumps(asdict(row), ensure_ascii=False), flush=True)
    for figure in (*(() if as_json else figures), *parts_for(told, answers)):
        show(figure, as_json)
    return sum(figure.verdict == "FAIL" for figure in figures)


def _misses(answers: list[Answered], wanted: int) -> Iterator[str]:
    """The first that went wrong, with the place where the right session stands."""
    wrong = [one for one in answers if one.sessions["hit@1"] == 0]
    for one in wrong[: max(wanted, 0)]:
        places = list(dict.fromkeys(session for session, _ in one.places))
        at = next((number for number, session in enumerate(places, 1) if session in one.question.sessions), None)
        yield f"{one.question.group}: {one.question.text}\n    right at {at or 'nowhere'}; first {one.places[:1]}"


if __name__ == "__main__":
    sys.exit(main())
