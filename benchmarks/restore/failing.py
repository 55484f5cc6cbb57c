"""`python -m benchmarks.restore.failing`: what is said to fail, against transcripts whose open failures are known by construction.

The transcripts are those of `tests/derive/failure_lab.py`: checks of invented projects in many dresses, with edits, reports and confirmations in
several languages between them. A failure counts as found if the message of its last failed run, or of the report, is the one that is listed.
"""

from __future__ import annotations

import argparse

from benchmarks.figures import Figure, show
from benchmarks.restore.measuring import Score, total
from everturn.derive.open_failures import still_failing, unconfirmed_reports
from tests.derive.failure_lab import play

_RUNS = 500


def lab_scores(runs: int) -> list[Score]:
    """Score what is listed of each transcript, loose ends of reports among it."""
    return [_score(seed) for seed in range(runs)]


def _score(seed: int) -> Score:
    run = play(seed)
    listed = {one.last_seq for one in (*still_failing(run.state), *unconfirmed_reports(run.state))}
    known = run.expected()
    right = len(listed & known)
    return Score(right, len(known), right, len(listed))


def main(arguments: list[str] | None = None) -> int:
    """Print precision and recall."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.restore.failing", description=__doc__)
    parser.add_argument("--runs", type=int, default=_RUNS, help="how many transcripts are played")
    whole = total(lab_scores(parser.parse_args(arguments).runs))
    show(
        Figure(
            "played failures, precision", whole.precision, "", 0.95, True, f"{whole.right:.0f} of {whole.listed:.0f}"
        ),
        as_json=False,
    )
    show(
        Figure("played failures, recall", whole.recall, "", 0.95, True, f"{whole.found:.0f} of {whole.all:.0f}"),
        as_json=False,
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
