"""Plots on a terminal: lines of text that fit its width. Without colour the same is said with shades and lengths.

Every label goes through the caller's `text`, which makes it fit to be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

from msgspec.structs import replace

from everturn.analyse.plots import Bars, Calendar, Heat, Plot, calendar_words
from everturn.derive.printable import count_cells, cut_cells

_SPARKS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_SHADES = " ░▒▓█"
_COLOURS = (17, 18, 19, 26, 32, 38, 44, 50)  # of 256, dark blue to bright
_LABEL = 22
_DAYS = ("Mon", "", "Wed", "", "Fri", "", "Sun")


class Sketch:
    """A drawing for one terminal."""

    def __init__(self, width: int, colour: bool, text: Callable[[str], str]) -> None:
        self.width, self.colour, self._text = max(width, 20), colour, text

    def lines(self, plot: Plot) -> Iterator[str]:
        """The plot, line by line."""
        yield cut_cells(self._text(plot.title), self.width)
        if isinstance(plot, Heat):
            yield from self._heat(plot)
        elif isinstance(plot, Bars):
            yield from self._bars(plot)
        else:
            yield from self._calendar(plot)

    def bar(self, value: float, most: float, width: int) -> str:
        """One bar of at most `width` cells, in eighths of a cell."""
        eighths = round(8 * width * value / most) if most > 0 else 0
        eighths = max(eighths, 1) if value > 0 else 0
        return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

    # kinds ------------------------------------------------------------------------------------------------------------
    def _heat(self, plot: Heat) -> Iterator[str]:
        labels = [self._label(row) for row in plot.rows]
        margin = max(map(count_cells, labels), default=0)
        columns = max(1, min(len(plot.columns), (self.width - margin - 2) // 3))
        keys = [chr(ord("a") + number % 26) for number in range(columns)]
        yield f"{' ' * margin}  {''.join(f' {key} ' for key in keys)}".rstrip()
        for label, values in zip(labels, plot.values, strict=True):
            most = sum(values)
            shown = "".join(self._cell(value, most) for value in values[:columns])
            yield f"{label}{' ' * (margin - count_cells(label))}  {shown}".rstrip()
        yield ""
        for key, column in zip(keys, plot.columns, strict=False):
            yield f"{key} {self._label(column)}"

    def _cell(self, value: int, most: int) -> str:
        share = value / most if most else 0.0
        if not self.colour:
            return f" {self._shade(share)}{self._shade(share)}"
        return f" \x1b[48;5;{self._colour_index(share)}m  \x1b[0m" if value else " · "

    def _bars(self, plot: Bars) -> Iterator[str]:
        numbers = [_format_count(bar.value, bar.part) for bar in plot.bars]
        labels = [self._label(bar.label) for bar in plot.bars]
        margin, tail = max(map(count_cells, labels), default=0), max(map(len, numbers), default=0)
        room = max(self.width - margin - tail - 4, 4)
        most = max((bar.value for bar in plot.bars), default=0)
        for label, bar, number in zip(labels, plot.bars, numbers, strict=True):
            drawn = self.bar(bar.value, most, room)
            drawn = self._colour_part(drawn, bar.part / bar.value if bar.value else 0.0)
            yield f"{' ' * (margin - count_cells(label))}{label}  {drawn}  {number}".rstrip()
        yield cut_cells(
            self._text(f"{plot.across} → {plot.unit}" + (f" ({plot.part})" if plot.part else "")), self.width
        )

    def _colour_part(self, drawn: str, part: float) -> str:
        if not self.colour or not part:
            return drawn
        first = max(1, round(len(drawn) * part))
        return f"\x1b[31m{drawn[:first]}\x1b[0m{drawn[first:]}"

    def _calendar(self, plot: Calendar) -> Iterator[str]:
        weeks = -(-len(plot.days) // 7)
        shown = max(1, min(weeks, (self.width - 5) // (2 if self.colour else 1)))
        skipped = (weeks - shown) * 7
        days, first = plot.days[skipped:], plot.first + timedelta(days=skipped)
        most = max(days, default=0)
        for weekday in range(7):
            marks = "".join(self._day(value, most) for value in days[weekday::7])
            yield f"{_DAYS[weekday]:<4} {marks}".rstrip()
        yield cut_cells(self._text(calendar_words(replace(plot, first=first, days=days))), self.width)

    def _day(self, value: int, most: int) -> str:
        share = value / most if most else 0.0
        if not self.colour:
            return self._shade(share) if value else "·"
        return f"\x1b[48;5;{self._colour_index(share)}m  \x1b[0m" if value else "· "

    # parts ------------------------------------------------------------------------------------------------------------
    def _label(self, label: str) -> str:
        return cut_cells(self._text(label), min(_LABEL, self.width // 3))

    def _shade(self, share: float) -> str:
        return _SHADES[0] if share <= 0 else _SHADES[min(1 + int(share * 4), 4)]

    def _colour_index(self, share: float) -> int:
        return _COLOURS[min(int(share * len(_COLOURS)), len(_COLOURS) - 1)]


def spark_line(values: Sequence[float], width: int) -> str:
    """Values over time as one line; neighbours are added up where there are more than fit."""
    size = -(-len(values) // max(width, 1)) or 1
    sums = [sum(values[start : start + size]) for start in range(0, len(values), size)]
    most = max(sums, default=0)
    top = len(_SPARKS) - 1
    return "".join(_SPARKS[round(top * value / most)] if value > 0 and most else " " for value in sums).rstrip()


def _format_count(value: int, part: int) -> str:
    return f"{value:,}" + (f" ({part:,})" if part else "")
