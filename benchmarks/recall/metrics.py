"""How good a ranking is, given what would have been right. Pure functions, all values between 0 and 1.

hit@k     is anything right among the first k
recall@k  how much of what is right is among the first k
MRR       one divided by the place of the first right answer
nDCG@k    what is right counts less the further down it stands; 1 is the best order possible
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from dataclasses import dataclass
from math import ceil, log2

CUTS = (1, 5, 10)

#: Names of the metrics, in the order in which they are told.
NAMES = (*(f"hit@{k}" for k in CUTS), *(f"recall@{k}" for k in CUTS), "MRR", "nDCG@10")


@dataclass(frozen=True)
class Scores:
    """Means over `n` questions, by the name of the metric."""

    n: int
    values: dict[str, float]


def judge(ranking: Sequence[Hashable], right: Set[Hashable]) -> dict[str, float]:
    """The metrics of one answer. What stands in a ranking twice counts where it stands first."""
    ranking = list(dict.fromkeys(ranking))
    places = [place for place, one in enumerate(ranking, 1) if one in right]
    values: dict[str, float] = {}
    for k in CUTS:
        found = sum(place <= k for place in places)
        values[f"hit@{k}"] = float(found > 0)
        values[f"recall@{k}"] = found / len(right)
    values["MRR"] = 1 / places[0] if places else 0.0
    values["nDCG@10"] = _gain(place for place in places if place <= 10) / _gain(range(1, min(10, len(right)) + 1))
    return values


def mean(judged: Sequence[dict[str, float]]) -> Scores:
    """Of several answers."""
    n = len(judged)
    return Scores(n, {name: sum(one[name] for one in judged) / n if n else 0.0 for name in NAMES})


def percentile(values: Iterable[float], share: float) -> float:
    """The value below or at which that share of all lies; 0 when there are none."""
    ordered = sorted(values)
    return ordered[max(0, ceil(share * len(ordered)) - 1)] if ordered else 0.0


def _gain(places: Iterable[int]) -> float:
    return sum(1 / log2(place + 1) for place in places)
