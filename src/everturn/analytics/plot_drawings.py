"""Plots as SVG, alone or in a page, and as text on a terminal.

An SVG loads nothing, runs nothing, and every label is escaped. One for a page (`standalone=False`) takes the colours of
the page and has no inline style that a strict policy would refuse. A sketch fits the width of the terminal; without
colour it uses shades and lengths, and every label goes through the caller's `text`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from html import escape

from msgspec.structs import replace

from everturn.analytics.plots import Bars, Calendar, Heat, Plot, calendar_words
from everturn.text.printable import count_cells, cut_cells, printable

_BLUE, _RED, _GREEN = "#2f6fb3", "#c8473c", "#2c8a55"
_WIDTH = 760
_STYLE = (
    "<style>svg{background:#fff;color:#222;font-family:system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){svg{background:#15181c;color:#dde}}</style>"
)
_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root{{color-scheme:light dark}}
body{{margin:2rem auto;max-width:60rem;padding:0 1rem;font-family:system-ui,sans-serif;background:#fff;color:#222}}
svg{{width:100%;height:auto}}
@media(prefers-color-scheme:dark){{body{{background:#15181c;color:#dde}}}}
</style></head><body>
{body}
</body></html>
"""


def plot_svg(plot: Plot, standalone: bool = True) -> str:
    if isinstance(plot, Heat):
        return _draw_heat(plot, standalone)
    return _draw_bars(plot, standalone) if isinstance(plot, Bars) else _draw_calendar(plot, standalone)


def plot_page(plots: Iterable[Plot]) -> str:
    drawn = list(plots)
    title = _escape_text(drawn[0].title) if drawn else "everturn"
    return _PAGE.format(title=title, body="\n".join(plot_svg(plot, standalone=False) for plot in drawn))


# --- SVG ---
def _draw_heat(plot: Heat, standalone: bool) -> str:
    left, top, size = 150, 130, 34
    parts = [_text(left - 8, top - 6, f"{plot.down} ↓  {plot.across} →  in %", "end", 11, faint=True)]
    for x, column in enumerate(plot.columns):
        at = left + x * size + size / 2
        parts.append(
            f'<text x="{at + 4:.0f}" y="{top - 8}" font-size="12" fill="currentColor" '
            f'transform="rotate(-45 {at + 4:.0f} {top - 8})">{_label(column)}</text>'
        )
    for y, (row, values) in enumerate(zip(plot.rows, plot.values, strict=True)):
        middle = top + y * size + size / 2
        parts.append(_text(left - 8, middle + 4, _label(row), "end", 12, ready=True))
        total = sum(values)
        for x, value in enumerate(values):
            note = f"{row} → {plot.columns[x]}: {value:,} of {total:,}"
            parts.append(_heat_cell(left + x * size, top + y * size, size, value, total, note))
    width, height = max(left + len(plot.columns) * size + 70, 420), top + len(plot.rows) * size + 16
    return _svg(plot.title, width, height, parts, standalone)


def _heat_cell(x: float, y: float, size: int, value: int, total: int, note: str) -> str:
    share = value / total if total else 0.0
    box = _draw_box(x + 1, y + 1, size - 2, size - 2, _BLUE, 0.04 + 0.96 * share**0.6 if value else 0.04, note)
    if share < 0.005:
        return box
    colour = "#fff" if share > 0.4 else "currentColor"
    return box + (
        f'<text x="{x + size / 2:.0f}" y="{y + size / 2 + 4:.0f}" font-size="10" text-anchor="middle" fill="{colour}" '
        f'pointer-events="none">{100 * share:.0f}</text>'
    )


def _draw_bars(plot: Bars, standalone: bool) -> str:
    left, top, height = 60, 56, 240
    room = _WIDTH - left - 20
    most = max((bar.value for bar in plot.bars), default=0) or 1
    wide = room / max(len(plot.bars), 1)
    parts = []
    step = 1  # the marks of the axis are round numbers
    while most / step > 5:
        step = step * 2 if str(step)[0] in "15" else step * 5 // 2
    for mark in range(0, most + 1, step):
        y = top + height - height * mark / most
        parts.append(
            f'<line x1="{left}" x2="{_WIDTH - 20}" y1="{y:.1f}" y2="{y:.1f}" stroke="currentColor" '
            f'stroke-opacity="0.15"/>{_text(left - 8, y + 4, f"{mark:,}", "end", 11, faint=True)}'
        )
    for number, bar in enumerate(plot.bars):
        x = left + number * wide
        tall, part = height * bar.value / most, height * bar.part / most
        note = f"{bar.label}: {bar.value:,} {plot.unit}" + (f", {bar.part:,} {plot.part}" if plot.part else "")
        parts.append(_draw_box(x + wide * 0.1, top + height - tall, wide * 0.8, tall, _BLUE, 0.85, note))
        if part:
            parts.append(_draw_box(x + wide * 0.1, top + height - part, wide * 0.8, part, _RED, 1, note))
        parts.append(_text(x + wide / 2, top + height + 16, _label(bar.label), "middle", 11, ready=True))
    parts.append(_text(left + room / 2, top + height + 36, plot.across, "middle", 12, faint=True))
    parts.append(_draw_legend(plot, top - 16))
    return _svg(plot.title, _WIDTH, top + height + 52, parts, standalone)


def _draw_legend(plot: Bars, y: int) -> str:
    parts = [_draw_box(_WIDTH - 250, y - 9, 10, 10, _BLUE, 0.85), _text(_WIDTH - 236, y, plot.unit, "start", 11)]
    if plot.part:
        parts += [_draw_box(_WIDTH - 160, y - 9, 10, 10, _RED, 1), _text(_WIDTH - 146, y, plot.part, "start", 11)]
    return "".join(parts)


def _draw_calendar(plot: Calendar, standalone: bool) -> str:
    left, top, size = 40, 62, 13
    most = max(plot.days, default=0) or 1
    parts, month = [], 0
    for number, value in enumerate(plot.days):
        day = plot.first + timedelta(days=number)
        x, y = left + number // 7 * size, top + number % 7 * size
        shade = 0.2 + 0.8 * (value / most) ** 0.5 if value else 0.07
        parts.append(_draw_box(x, y, size - 2, size - 2, _GREEN, shade, f"{day}: {value:,} {plot.unit}"))
        if day.month != month and number % 7 == 0:
            month = day.month
            if number // 7 * size - 24 >= 0 or number == 0:
                parts.append(_text(x, top - 6, f"{day:%b}", "start", 10, faint=True))
    for weekday, name in ((0, "Mon"), (2, "Wed"), (4, "Fri")):
        parts.append(_text(left - 6, top + weekday * size + 10, name, "end", 10, faint=True))
    parts.append(_text(left, top + 7 * size + 18, calendar_words(plot), "start", 11, faint=True))
    width = max(left + (len(plot.days) // 7 + 1) * size + 16, 360)
    return _svg(plot.title, width, top + 7 * size + 32, parts, standalone)


# --- SVG elements ---
def _svg(title: str, width: float, height: float, parts: list[str], standalone: bool) -> str:
    name = _escape_text(title)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{name}" class="plot">'
    )
    heading = f'<text x="16" y="26" font-size="16" font-weight="600" fill="currentColor">{name}</text>'
    return f"{head}{_STYLE if standalone else ''}<title>{name}</title>{heading}{''.join(parts)}</svg>\n"


def _draw_box(x: float, y: float, width: float, height: float, colour: str, shade: float, note: str = "") -> str:
    title = f"<title>{_escape_text(note)}</title>" if note else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(height, 0):.1f}" rx="2" fill="{colour}" '
        f'fill-opacity="{shade:.2f}">{title}</rect>'
    )


def _text(x: float, y: float, words: str, anchor: str, size: int, faint: bool = False, ready: bool = False) -> str:
    shown = words if ready else _escape_text(words)
    look = ' fill-opacity="0.7"' if faint else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="currentColor"{look}>{shown}</text>'


def _label(words: str) -> str:
    return escape(cut_cells(printable(words, ""), 20))


def _escape_text(words: str) -> str:
    return escape(printable(words, ""))


_SPARKS = "▁▂▃▄▅▆▇█"
_EIGHTHS = " ▏▎▍▌▋▊▉"
_SHADES = " ░▒▓█"
_COLOURS = (17, 18, 19, 26, 32, 38, 44, 50)  # of 256, dark blue to bright
_LABEL = 22
_DAYS = ("Mon", "", "Wed", "", "Fri", "", "Sun")


class Sketch:
    def __init__(self, width: int, colour: bool, text: Callable[[str], str]) -> None:
        self.width, self.colour, self._text = max(width, 20), colour, text

    def lines(self, plot: Plot) -> Iterator[str]:
        yield cut_cells(self._text(plot.title), self.width)
        if isinstance(plot, Heat):
            yield from self._heat(plot)
        elif isinstance(plot, Bars):
            yield from self._bars(plot)
        else:
            yield from self._calendar(plot)

    def bar(self, value: float, most: float, width: int) -> str:
        """Return one bar of at most `width` cells, in eighths of a cell."""
        eighths = round(8 * width * value / most) if most > 0 else 0
        eighths = max(eighths, 1) if value > 0 else 0
        return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()

    # --- kinds of plots ---
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
        numbers = [f"{bar.value:,}" + (f" ({bar.part:,})" if bar.part else "") for bar in plot.bars]
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

    # --- parts ---
    def _label(self, label: str) -> str:
        return cut_cells(self._text(label), min(_LABEL, self.width // 3))

    def _shade(self, share: float) -> str:
        return _SHADES[0] if share <= 0 else _SHADES[min(1 + int(share * 4), 4)]

    def _colour_index(self, share: float) -> int:
        return _COLOURS[min(int(share * len(_COLOURS)), len(_COLOURS) - 1)]


def spark_line(values: Sequence[float], width: int) -> str:
    """Return values over time as one line; neighbours are added up if there are more than fit."""
    size = -(-len(values) // max(width, 1)) or 1
    sums = [sum(values[start : start + size]) for start in range(0, len(values), size)]
    most = max(sums, default=0)
    top = len(_SPARKS) - 1
    return "".join(_SPARKS[round(top * value / most)] if value > 0 and most else " " for value in sums).rstrip()
