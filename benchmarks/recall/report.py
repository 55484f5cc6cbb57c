"""The figures of a set: ours with its bar, plain FTS5 and the other simple methods beside it.

Every hit@1, hit@5, recall@5 and recall@10 must reach what FTS5 reaches on the same questions, and some of them a fixed bar as
well; the higher one counts. The note gives the 95 % interval of everturn − FTS5 (`intervals`). It informs and is no bar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.figures import Figure
from benchmarks.recall.intervals import Interval, intervals
from benchmarks.recall.measuring import LEVELS, OURS, PLAIN, Answered, judged, milliseconds
from benchmarks.recall.metrics import NAMES, Scores, mean
from benchmarks.recall.questions import Question

Answers = Mapping[str, Sequence[Answered]]  # by method

#: (set, level, metric) → at least this; in percent, but for MRR.
BARS = {
    ("LoCoMo", "session", "hit@1"): 77.5,
    ("LoCoMo", "session", "hit@5"): 94.0,
    ("LoCoMo", "session", "MRR"): 0.835,
    ("LoCoMo", "message", "recall@5"): 66.0,
    ("LoCoMo", "message", "recall@10"): 76.0,
    ("devmembench", "session", "hit@1"): 78.0,
    ("devmembench", "session", "hit@5"): 98.5,
    ("BEAM-100K", "message", "recall@5"): 46.0,
    ("RealMem", "session", "hit@5"): 68.0,
    ("RealMem", "message", "recall@5"): 35.0,
    ("own held sentences", "message", "hit@1"): 45.0,
    ("own held sentences", "message", "hit@5"): 75.0,
    ("own held keywords", "message", "hit@1"): 50.0,
    ("own held keywords", "message", "hit@5"): 80.0,
    ("times", "message", "hit@5"): 95.0,
    ("agent titles", "session", "hit@1"): 60.0,
    ("agent titles", "session", "hit@5"): 80.0,
    ("agent exact strings", "session", "hit@1"): 99.0,
}
#: Metrics in which ours must reach FTS5.
AT_LEAST_PLAIN = ("hit@1", "hit@5", "recall@5", "recall@10")
_NOT_PERCENT = ("MRR", "nDCG@10")


@dataclass(frozen=True)
class Row:
    """One number of one method, for programs."""

    set: str
    level: str
    method: str
    metric: str
    value: float
    n: int
    bar: float | None = None  # ours must reach it
    more_than_plain: Interval | None = None  # the 95 % interval of ours − FTS5

    @property
    def verdict(self) -> str:
        """pass | FAIL | – (no bar)."""
        return "–" if self.bar is None else "pass" if self.value >= self.bar else "FAIL"


def rows(name: str, answers: Answers) -> Iterator[Row]:
    """Everything that was measured; shares in percent, times in CPU milliseconds."""
    for level in LEVELS:
        by_method = {method: judged(given, level) for method, given in answers.items()}
        if not by_method[OURS]:
            continue
        plain = mean(by_method[PLAIN])
        sure = intervals(by_method[OURS], by_method[PLAIN])
        for method, values in by_method.items():
            scores = mean(values)
            for metric in NAMES if scores.n else ():
                row = Row(name, level, method, metric, _shown(metric, scores), scores.n)
                yield _beside_plain(row, plain, sure[metric]) if method == OURS else row
    for method, given in answers.items():
        for metric, value in zip(("CPU ms p50", "CPU ms p95"), milliseconds(given), strict=True):
            yield Row(name, "query", method, metric, value, len(given))


def figures_of(measured: Sequence[Row]) -> Iterator[Figure]:
    """Ours by metric; what the others reach stands in the note, FTS5 first."""
    for row in measured:
        if row.method == OURS:
            same = [one for one in measured if (one.level, one.metric) == (row.level, row.metric) and one != row]
            beside = " · ".join(f"{one.method} {_number(one)}" for one in same)
            unit = "ms" if row.level == "query" else "" if row.metric in _NOT_PERCENT else "%"
            title = (
                f"{row.set}, {row.level}: {row.metric}"
                if row.level != "query"
                else f"{row.set}: {row.metric} per query"
            )
            note = f"{row.n} questions; {beside}{_interval(row)}"
            yield Figure(title, row.value, unit, row.bar, at_least=True, note=note)


def parts_of(
    name: str, answers: Answers, level: str, metrics: Sequence[str], part: Callable[[Question], str]
) -> Iterator[Figure]:
    """The same for parts of the questions, ours beside plain FTS5. Told without bars."""
    parts = sorted({part(one.question) for one in answers[OURS]})
    for which in parts:
        ours, plain = (
            mean(judged([one for one in answers[method] if part(one.question) == which], level))
            for method in (OURS, PLAIN)
        )
        for metric in metrics if ours.n else ():
            beside = f"{ours.n} questions" + (f"; FTS5 {_shown(metric, plain):.3g}" if plain.n else "")
            unit = "" if metric == "MRR" else "%"
            yield Figure(f"  {name}, {which}, {level}: {metric}", _shown(metric, ours), unit, note=beside)


def _beside_plain(row: Row, plain: Scores, sure: Interval) -> Row:
    bars = [bar] if (bar := BARS.get((row.set, row.level, row.metric))) is not None else []
    if row.metric in AT_LEAST_PLAIN:
        bars.append(_shown(row.metric, plain))
    size = 1 if row.metric in _NOT_PERCENT else 100
    bar = max(bars, default=None)
    return Row(
        row.set, row.level, row.method, row.metric, row.value, row.n, bar, (sure[0] * size, sure[1] * size)
    )  # fmt: skip


def _shown(metric: str, scores: Scores) -> float:
    """In percent where it is a share; equal sums that were added in another order stay equal."""
    return round(scores.values[metric] * (1 if metric in _NOT_PERCENT else 100), 9)


def _number(row: Row) -> str:
    sampled = f" (of {row.n})" if row.method.startswith("LIKE") and row.n < 100 else ""
    return f"{row.value:.3g}{sampled}"


def _interval(row: Row) -> str:
    if row.more_than_plain is None:
        return ""
    digits = 3 if row.metric in _NOT_PERCENT else 1
    low, high = (round(one, digits) + 0.0 for one in row.more_than_plain)  # never −0
    return f"; more than FTS5 by {low:+.{digits}f} to {high:+.{digits}f}"
