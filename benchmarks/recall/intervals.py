"""How sure a difference is: a paired bootstrap over the questions.

Questions are drawn again and again, as many as there are, each as often as chance will have it, and the mean difference of
the draw is noted. Of these means 95 of 100 lie within the interval. The seed is fixed, so a run can be repeated.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

RESAMPLES = 2_000
SEED = 20261116
_OUTSIDE = 0.025  # on each side

Interval = tuple[float, float]


def intervals(
    ours: Sequence[Mapping[str, float]], theirs: Sequence[Mapping[str, float]], resamples: int = RESAMPLES
) -> dict[str, Interval]:
    """The 95 % interval of ours − theirs for each metric; both judge the same questions in the same order."""
    if not ours:
        return {}
    differences = {name: [one[name] - other[name] for one, other in zip(ours, theirs, strict=True)] for name in ours[0]}
    chance = random.Random(SEED)
    n = len(ours)
    means: dict[str, list[float]] = {name: [] for name in differences}
    for _ in range(resamples):
        drawn = chance.choices(range(n), k=n)
        for name, values in differences.items():
            means[name].append(sum(map(values.__getitem__, drawn)) / n)
    return {name: _middle(sorted(values)) for name, values in means.items()}


def _middle(ordered: list[float]) -> Interval:
    out = int(len(ordered) * _OUTSIDE)
    return ordered[out], ordered[-1 - out]
