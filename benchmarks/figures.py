"""A measured figure, its bar, and how both are printed."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Figure:
    """One number. Without a bar it is there to be looked at; without a value it could not be measured and `note` says why."""

    name: str
    value: float | None
    unit: str = ""
    bar: float | None = None
    at_least: bool = False  # the bar is a floor; else a ceiling
    note: str = ""

    @property
    def verdict(self) -> str:
        """pass | FAIL | – (no bar) | skipped."""
        if self.value is None:
            return "skipped"
        if self.bar is None:
            return "–"
        return "pass" if (self.value >= self.bar if self.at_least else self.value <= self.bar) else "FAIL"


def exact(name: str, wrong: Iterable[str], looked_at: str) -> Figure:
    """A promise without exceptions: how often it was broken, which may be never."""
    broken = list(wrong)
    more = f"; first: {broken[0]}" if broken else ""
    return Figure(name, len(broken), "wrong", 0, note=looked_at + more)


def show(figure: Figure, as_json: bool) -> None:
    """Print a figure as soon as it is known."""
    if as_json:
        print(json.dumps({**asdict(figure), "verdict": figure.verdict}, ensure_ascii=False), flush=True)
        return
    bar = "" if figure.bar is None else f"{'≥' if figure.at_least else '≤'} {_number(figure.bar)}"
    value = "" if figure.value is None else f"{_number(figure.value)} {figure.unit}"
    print(f"{figure.verdict:<8}{figure.name:<58}{value:>18}  {bar:<11}{figure.note}".rstrip(), flush=True)


def say(words: str) -> None:
    """Tell a person what is going on, beside the figures."""
    print(words, file=sys.stderr, flush=True)


def _number(value: float) -> str:
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.1f}" if abs(value) >= 100 else f"{value:.3g}"
