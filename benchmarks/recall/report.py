"""The figures of a set: ours with its bar, and the simple methods beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.figures import Figure
from benchmarks.recall.measuring import OURS, Answered, by_message, by_session, milliseconds
from benchmarks.recall.metrics import NAMES, Scores
from benchmarks.recall.questions import Question

Answers = Mapping[str, Sequence[Answered]]  # by method

#: (set, level, metric) → at least this; in percent, but for MRR.
BARS = {
    ("LoCoMo", "session", "hit@1"): 75.0,
    ("LoCoMo", "session", "hit@5"): 94.0,
    ("LoCoMo", "session", "MRR"): 0.835,
    ("LoCoMo", "message", "recall@5"): 66.0,
    ("LoCoMo", "message", "recall@10"): 76.0,
    ("devmembench", "session", "hit@1"): 78.0,
    ("devmembench", "session", "hit@5"): 98.5,
    ("agent titles", "session", "hit@1"): 60.0,
    ("agent titles", "session", "hit@5"): 80.0,
    ("agent exact strings", "session", "hit@1"): 99.0,
}
_LEVELS: dict[str, Callable[..., Scores]] = {"session": by_session, "message": by_message}


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


def rows(name: str, answers: Answers) -> Iterator[Row]:
    """Everything that was measured; shares in percent, times in CPU milliseconds."""
    for method, given in answers.items():
        for level, score in _LEVELS.items():
            scores = score(given)
            if scores.n:
                yield from (_row(name, level, method, one, scores) for one in NAMES)
        for metric, value in zip(("CPU ms p50", "CPU ms p95"), milliseconds(given), strict=True):
            yield Row(name, "query", method, metric, value, len(given))


def figures_of(name: str, answers: Answers) -> Iterator[Figure]:
    """Ours by metric; what the others reach stands in the note."""
    measured = list(rows(name, answers))
    for row in measured:
        if row.method == OURS:
            same = [one for one in measured if (one.level, one.metric) == (row.level, row.metric) and one != row]
            beside = " · ".join(f"{one.method} {_number(one)}" for one in same)
            unit = "ms" if row.level == "query" else "" if row.metric in ("MRR", "nDCG@10") else "%"
            title = f"{name}, {row.level}: {row.metric}" if row.level != "query" else f"{name}: {row.metric} per query"
            yield Figure(title, row.value, unit, row.bar, at_least=True, note=f"{row.n} questions; {beside}")


def parts_of(
    name: str, answers: Answers, level: str, metrics: Sequence[str], part: Callable[[Question], str]
) -> Iterator[Figure]:
    """The same for parts of the questions, ours beside plain FTS5. Told without bars."""
    parts = sorted({part(one.question) for one in answers[OURS]})
    for which in parts:
        ours, plain = (
            _LEVELS[level](answers[method], lambda one, which=which: part(one) == which) for method in (OURS, "FTS5")
        )
        for metric in metrics if ours.n else ():
            beside = f"{ours.n} questions" + (f"; FTS5 {_shown(metric, plain):.3g}" if plain.n else "")
            unit = "" if metric == "MRR" else "%"
            yield Figure(f"  {name}, {which}, {level}: {metric}", _shown(metric, ours), unit, note=beside)


def _row(name: str, level: str, method: str, metric: str, scores: Scores) -> Row:
    bar = BARS.get((name, level, metric)) if method == OURS else None
    return Row(name, level, method, metric, _shown(metric, scores), scores.n, bar)


def _shown(metric: str, scores: Scores) -> float:
    value = scores.values[metric]
    return value if metric in ("MRR", "nDCG@10") else value * 100


def _number(row: Row) -> str:
    sampled = f" (of {row.n})" if row.method.startswith("LIKE") and row.n < 100 else ""
    return f"{row.value:.3g}{sampled}"
