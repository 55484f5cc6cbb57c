"""Plots as SVG, alone or in a page: nothing is loaded from elsewhere, nothing runs, every label is escaped.

An SVG for a page has no style of its own (`standalone=False`): colours of text and lines follow the page (`currentColor`),
and there is no inline style that a strict policy would refuse. A file of its own is legible on light and dark ground.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from html import escape

from everturn.analyse.plots import Bars, Calendar, Heat, Plot, calendar_words
from everturn.derive.printable import cut_cells, printable

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
    """One plot as SVG."""
    if isinstance(plot, Heat):
        return _draw_heat(plot, standalone)
    return _draw_bars(plot, standalone) if isinstance(plot, Bars) else _draw_calendar(plot, standalone)


def plot_page(plots: Iterable[Plot]) -> str:
    """Plots as one HTML file."""
    drawn = list(plots)
    title = _escape_text(drawn[0].title) if drawn else "everturn"
    return _PAGE.format(title=title, body="\n".join(plot_svg(plot, standalone=False) for plot in drawn))


# kinds ----------------------------------------------------------------------------------------------------------------
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
    for mark in _axis_marks(most):
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
    told = calendar_words(plot)
    parts.append(_text(left, top + 7 * size + 18, told, "start", 11, faint=True))
    width = max(left + (len(plot.days) // 7 + 1) * size + 16, 360)
    return _svg(plot.title, width, top + 7 * size + 32, parts, standalone)


# parts ----------------------------------------------------------------------------------------------------------------
def _svg(title: str, width: float, height: float, parts: list[str], standalone: bool) -> str:
    name = _escape_text(title)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{name}" class="plot">'
    )
    heading = f'<text x="16" y="26" font-size="16" font-weight="600" fill="currentColor">{name}</text>'
    return f"{head}{_STYLE if standalone else ''}<title>{name}</title>{heading}{''.join(parts)}</svg>\n"


def _draw_box(x: float, y: float, width: float, height: float, colour: str, shade: float, note: str = "") -> str:
    told = f"<title>{_escape_text(note)}</title>" if note else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(height, 0):.1f}" rx="2" fill="{colour}" '
        f'fill-opacity="{shade:.2f}">{told}</rect>'
    )


def _text(x: float, y: float, words: str, anchor: str, size: int, faint: bool = False, ready: bool = False) -> str:
    shown = words if ready else _escape_text(words)
    look = ' fill-opacity="0.7"' if faint else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="currentColor"{look}>{shown}</text>'


def _label(words: str) -> str:
    return escape(cut_cells(printable(words, ""), 20))


def _escape_text(words: str) -> str:
    return escape(printable(words, ""))


def _axis_marks(most: int) -> list[int]:
    """Round numbers up to the highest."""
    step = 1
    while most / step > 5:
        step = step * 2 if str(step)[0] in "15" else step * 5 // 2
    return list(range(0, most + 1, step))
