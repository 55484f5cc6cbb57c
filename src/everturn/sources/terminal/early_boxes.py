"""Screens of OpenCode 0.1: a column of boxes in the middle, `┃ … ┃` around prompts, answers and tool calls alike.

Prompts and answers both end with a name and a time: of the human, of the model. The status below the input field names
the model, and every role has its own border colour; together they tell who is speaking. A tool call has a title and no
name below. The column has the same width on every wide terminal: its rows are read without the margin, so that they stay
the same when the terminal changes its size.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from msgspec.structs import replace

from everturn.sources.terminal import tools
from everturn.sources.terminal.frames import PaintedRow, ScreenLayout
from everturn.sources.terminal.rows import (
    TIME,
    TranscriptRow,
    colour_at,
    dedent_rows,
    place_saying,
    rejoin_rows,
    trim_rows,
    width,
)
from everturn.sources.terminal.transcript import Colour, DrawnCall, DrawnSaying, TranscriptSegment

PROGRAM = "early_boxes"
_BAR = "┃"
_HARD = "\xa0"  # a blank that does not break
_FIELD = re.compile(r"( *)┃[ \xa0]>(?:[ \xa0]|$)")
_STATUS = re.compile(r"[ \xa0]{0,4}opencode[ \xa0]v?(?P<version>\d[^\s\xa0]{0,30})")
_CONTEXT = "Context: "  # only in the status of these releases
_OLDEST = ("0.0.", "0.1.")
_LOGO = re.compile(r"█▀▀[█▀▄░ ]{10,}")
_TOP = 3  # rows in which the header begins
_LOWEST_TOAST = 12  # rows below the top in which toasts are drawn
_OUT_OF_LINE = 6  # cells by which joined emoji may shift a border


# the layout of a frame ------------------------------------------------------------------------------------------------
def find_layout(rows: Sequence[PaintedRow]) -> ScreenLayout | None:
    """Divide a frame; None for one that this program did not draw."""
    status = next((row.text for row in reversed(rows) if row.text), "")  # the program may use a part of the screen
    known = _STATUS.match(status)
    if known is not None and _CONTEXT not in status and not known["version"].startswith(_OLDEST):
        return None
    first = next((n for n in range(len(rows) - 1, 1, -1) if _is_field(rows[n].text)), None)
    if first is None:
        return ScreenLayout(PROGRAM, state="covered") if known else None
    left, right = rows[first].cells.index(_BAR), len(rows[first].cells.rstrip()) - 1
    end = next((n for n in range(first, len(rows)) if not _is_bordered(rows[n], left)), len(rows))
    footer = "\n".join(row.text.replace(_HARD, " ").strip() for row in rows[end:] if row.text)
    typed = _read_typed(rows[first:end], left)
    start, title = _read_header(rows, left)
    if known is None and (left or not start):  # narrow screens may have no room for the status
        is_home = any(_LOGO.search(row.text) for row in rows[:first]) and not any(row.text for row in rows[end + 1 :])
        return ScreenLayout(PROGRAM, (), "home", "", footer, typed) if is_home else None
    top = _find_uncovered(rows[: first - 2], start, left, right)
    if not start or top is None or rows[first - 2].text:
        return ScreenLayout(PROGRAM, (), "covered", title, footer, typed)
    return ScreenLayout(PROGRAM, [_crop(row, left) for row in rows[top : first - 2]], "talk", title, footer, typed, top)


def _is_field(text: str) -> bool:
    return text.endswith(_BAR) and _FIELD.match(text) is not None


def _is_bordered(row: PaintedRow, left: int) -> bool:
    return row.cells[left : left + 1] == _BAR


def _read_typed(rows: Sequence[PaintedRow], left: int) -> str:
    lines = [_crop(row, left).text.strip(_BAR)[3:] for row in rows]
    return "\n".join(trim_rows(lines))


def _read_header(rows: Sequence[PaintedRow], left: int) -> tuple[int, str]:
    """Return the first row of the conversation, 0 where no header is drawn, and the title of the session."""
    for first in range(min(_TOP, len(rows))):
        if _is_bordered(rows[first], left) and _crop(rows[first], left).text.startswith(f"{_BAR}  # "):
            end = first
            while end < len(rows) and _is_bordered(rows[end], left):
                end += 1
            lines = [_crop(row, left).text.strip(f" {_BAR}") for row in rows[first:end]]
            return end + 1, "\n".join(lines)
    return 0, ""


def _find_uncovered(rows: Sequence[PaintedRow], start: int, left: int, right: int) -> int | None:
    """Return the first row below the toasts at the upper right; None when something else covers the conversation.

    What stands beside a toast came from below and was seen before.
    """
    edges = [_find_edge(row, left, right) for row in rows]
    top = number = 0
    while number < len(rows):
        end = number + 1
        while end < len(rows) and edges[end] == edges[number]:
            end += 1
        is_box = edges[number] > 0 and end - number > 1
        if is_box and number < start + _LOWEST_TOAST and edges[number] - left > (right - left) // 3:
            top = end
        elif is_box or (edges[number] and number >= start and not _is_bordered(rows[number], left)):
            return None
        number = end
    return max(start, top)


def _find_edge(row: PaintedRow, left: int, right: int) -> int:
    """Return the cell in which something begins that covers a row: 0 for nothing, -1 where no border tells."""
    if not row.text:
        return 0
    edge = row.cells.find(_BAR, left + 1)
    if _is_bordered(row, left) and abs(edge - right) <= _OUT_OF_LINE:
        return 0
    return edge


def _crop(row: PaintedRow, left: int) -> PaintedRow:
    """Return a row without the margin."""
    return _crop_text(row.text, row.cells, row.inks, left)


@lru_cache(maxsize=4096)  # rows that did not change have to be the same objects
def _crop_text(text: str, cells: str, inks: str, left: int) -> PaintedRow:
    return PaintedRow(text[left:].replace(_HARD, " ").rstrip(), cells[left:], inks[left:])


# the conversation -----------------------------------------------------------------------------------------------------
_SIGNED = re.compile(rf"(\S.{{0,80}}?) \(({TIME})\)")
_FAILED = re.compile(r"Error: |\w{1,60}Error: |Tool execution aborted")
_THEME = {0x5C9CF5: "user", 0x5FAFFF: "user", 0x9D7CD8: "assistant", 0xAF87D7: "assistant"}  # the default one

Palette = dict[Colour, str]


class SignedBox(NamedTuple):
    """A box, with the name and the time in its last line where it has them."""

    rows: list[TranscriptRow]
    lines: list[str]
    colour: Colour
    name: str
    time: str
    is_cut: bool  # no padding stands above: the beginning was not drawn


def read_early_boxes(rows: Sequence[TranscriptRow], segment: TranscriptSegment) -> list[DrawnSaying]:
    """Return what was said in the rows of one segment."""
    boxes = list(_split_boxes(rows))
    palette = _learn_palette(boxes, segment.footer)
    return [item for box in boxes if (item := _read_box(box, palette)) is not None]


def _split_boxes(rows: Sequence[TranscriptRow]) -> Iterator[SignedBox]:
    """Yield the boxes: they end where the border ends or changes its colour, and below a line with name and time."""
    start = 0
    for number, row in enumerate(rows):
        if number + 1 == len(rows) or _ends_box(row, rows[number + 1]):
            yield from _build_box(rows[start : number + 1], rows[start - 1] if start else None)
            start = number + 1


def _ends_box(row: TranscriptRow, following: TranscriptRow) -> bool:
    """Whether another box begins with the row that follows."""
    if row.text.startswith(_BAR) != following.text.startswith(_BAR) or colour_at(row, 0) != colour_at(following, 0):
        return True
    return _SIGNED.fullmatch(_inside(row)) is not None and not _inside(following)


def _build_box(rows: Sequence[TranscriptRow], above: TranscriptRow | None) -> Iterator[SignedBox]:
    lines = trim_rows([_inside(row) for row in rows])
    used = [row for row in rows if _inside(row)]
    if not lines:
        return
    signed = _SIGNED.fullmatch(lines[-1])
    name, time = (signed[1], signed[2]) if signed else ("", "")
    is_cut = bool(_inside(rows[0])) and (above is None or bool(_inside(above)))
    yield SignedBox(used, trim_rows(lines[:-1]) if signed else lines, colour_at(used[0], 0), name, time, is_cut)


def _inside(row: TranscriptRow) -> str:
    """Return what stands between the borders, without the padding."""
    text = row.text.replace(_HARD, " ")
    if not text.startswith(_BAR):
        return text.rstrip()
    return text[1:].removesuffix(_BAR).removeprefix("  ").rstrip()


def _learn_palette(boxes: Sequence[SignedBox], footer: str) -> Palette:
    """Return whose boxes have which border colour. The name of the model at work stands in the footer."""
    votes: dict[Colour, Counter[str]] = {}
    for box in boxes:
        if box.name:
            role = "assistant" if footer and box.name in footer else "user"
            votes.setdefault(box.colour, Counter())[role] += 1
    palette: Palette = {colour: vote.most_common(1)[0][0] for colour, vote in votes.items()}
    if "assistant" not in palette.values():  # another model answered than the one that is shown now
        palette = {colour: _THEME.get(colour or 0, role) for colour, role in palette.items()}
    return palette


def _read_box(box: SignedBox, palette: Palette) -> DrawnSaying | None:
    if not box.lines or (len(box.lines) == 1 and box.lines[0] in tools.PENDING):
        return None
    role = palette.get(box.colour, "user" if box.name else "")
    text, fidelity = "\n".join(box.lines), "partial" if box.is_cut or not box.name else "rendered"
    if role == "assistant":
        return place_saying(
            box.rows, role=role, text=text, model=box.name, time_text=box.time, fidelity=fidelity
        )  # fmt: skip
    if role == "user" and fidelity == "partial":  # nobody submitted only a part of it
        return place_saying(box.rows, role="system", kind="notice", text=text, fidelity=fidelity)
    if role == "user":
        text = rejoin_rows(box.lines, _find_room(box))
        return place_saying(
            box.rows, role=role, text=text, author=box.name, time_text=box.time, starts_turn=True
        )  # fmt: skip
    call = _read_call(box)
    if call is not None:
        return place_saying(box.rows, role="assistant", calls=(call,))
    return place_saying(box.rows, role="assistant", kind="notice", text=text)


def _find_room(box: SignedBox) -> int:
    """Return how many cells a line of the box has: all but the borders and the padding."""
    return max(width(row.text.rstrip()) for row in box.rows) - 6


def _read_call(box: SignedBox) -> DrawnCall | None:
    """Return the call whose title is the first line, with a blank line below."""
    title, body = box.lines[0].strip(), box.lines[1:]
    if _FAILED.match(title) or (body and body[0].strip()):
        return None
    call = tools.read_box_title(title)
    if call is None:
        return None
    lines = trim_rows(body)
    if call.kind == "shell" and lines and lines[0].startswith(("> ", "$ ")):
        command, lines = tools.command_of([lines[0][2:], *lines[1:]])
        call = replace(call, command=command)
    output = "\n".join(dedent_rows(lines, 2))
    failed = _FAILED.match(output) is not None
    return replace(
        call, output=output, status="error" if failed else "ok",
        error_class=tools.error_class(output) if failed else "", action="" if failed else call.action,
        lines=(box.rows[0].index, box.rows[-1].index),
    )  # fmt: skip
