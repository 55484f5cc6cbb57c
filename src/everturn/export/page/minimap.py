"""A whole session at a glance: a strip with a bar for each turn, and a list of turns by what was asked.

Drawn from the rows of turns alone, without a word of what was said; many turns share a bar, so that what is drawn does
not grow with the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import log2

from msgspec import Struct

from everturn.derive.times import duration, iso, turn_ms
from everturn.export.page.markup import Html, element
from everturn.model.archive import Turn

_WIDE, _HIGH = 1000, 48
_BARS = 240
_BUSY = 15  # calls of a turn that make a full bar where no turn has more
_LOWEST = 6.0


class Entry(Struct, frozen=True):
    """A turn in the list: its number from 1, and how what was asked begins."""

    number: int
    words: str
    failed: bool = False
    address: str = ""  # `#t12` when it is not said


def minimap(turns: Sequence[Turn], address: Callable[[int], str] | None = None) -> Html:
    """A strip of bars, as high as the turn did work, red as far as calls failed; `address` is where turn N (from 1) is."""
    if not turns:
        return Html("")
    lead = address or (lambda number: f"#t{number}")
    weights = [1 + log2(1 + turn.n_messages) for turn in turns]
    bins = _bins(len(turns))
    scale = _WIDE / sum(weights)
    full = log2(1 + max(_BUSY, *(turn.n_calls for turn in turns)))
    left, drawn = 0.0, []
    for first, last in pairwise(bins):
        width = sum(weights[first:last]) * scale
        drawn.append(_bar(turns[first:last], left, width, full, lead(turns[first].idx + 1)))
        left += width
    label = f"All {len(turns):,} turns: the higher a bar the more calls, red where they failed"
    return Html(
        f'<nav class="minimap" aria-label="{label}"><svg viewBox="0 0 {_WIDE} {_HIGH}" preserveAspectRatio="none" '
        f'role="img" aria-label="{label}">{"".join(drawn)}</svg></nav>'
    )


def outline(entries: Iterable[Entry]) -> Html:
    """The turns by what was asked, each a link."""
    items = [
        element(
            "li",
            element("a", element("span", str(one.number), class_="number"), one.words, href=_address(one)),
            class_="failed" if one.failed else None,
        )
        for one in entries
    ]
    return element("nav", element("ol", Html("".join(items))), class_="outline", aria_label="Turns")


def _address(one: Entry) -> str:
    return one.address or f"#t{one.number}"


def _bins(count: int) -> list[int]:
    """Where each bar begins; the end of the last one too."""
    bars = min(count, _BARS)
    return [count * number // bars for number in range(bars)] + [count]


def _bar(turns: Sequence[Turn], left: float, width: float, full: float, address: str) -> Html:
    calls, errors = sum(turn.n_calls for turn in turns), sum(turn.n_errors for turn in turns)
    high = _LOWEST + (_HIGH - _LOWEST) * min(1.0, log2(1 + calls / len(turns)) / full)
    red = high * min(1.0, errors / calls) if calls else 0.0
    gap = min(1.5, width / 5)
    drawn = _rect(_kind(turns), left, _HIGH - high, width - gap, high)
    if red:
        drawn += _rect("failed", left, _HIGH - max(red, 3), width - gap, max(red, 3))
    for name in ("compacted", "interrupted"):
        if any(getattr(turn, name) for turn in turns):
            drawn += _rect(name, left, 0, min(width - gap, 4), _HIGH)
    # The whole height is the way to the turn, not only the bar.
    drawn += _rect("way", left, 0, width, _HIGH)
    return element("a", element("title", _told(turns, calls, errors)), Html(drawn), href=address)


def _kind(turns: Sequence[Turn]) -> str:
    if all(turn.inherited for turn in turns):
        return "inherited"
    if any(turn.n_calls for turn in turns):
        return "work"
    return "talk"


def _rect(name: str, x: float, y: float, width: float, height: float) -> str:
    return f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"/>'


def _told(turns: Sequence[Turn], calls: int, errors: int) -> str:
    first, last = turns[0], turns[-1]
    numbers = f"Turn {first.idx + 1}" if first is last else f"Turns {first.idx + 1}–{last.idx + 1}"
    facts = [numbers, iso(first.started)[:16].replace("T", " "), duration(turn_ms(first)) if first is last else ""]
    facts += [f"{calls:,} calls"] * bool(calls) + [f"{errors:,} failed"] * bool(errors)
    facts += [name for name in ("compacted", "interrupted") if any(getattr(turn, name) for turn in turns)]
    return " · ".join(filter(None, facts))
