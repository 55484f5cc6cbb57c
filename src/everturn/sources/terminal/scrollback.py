"""The main screen as one text: the lines that scrolled off its top, followed by what it shows.

A line that a settled frame showed, or that scrolled off, is never dropped; it is replaced only by its own later drawing.
Programs repaint the lower part again and again, and some clear everything and print it all anew, also wrapped differently
after a change of size. What is drawn once more takes the place of its older drawing; what is not stays where it was.

Known programs tell which rows at the bottom are no part of the text: the input field, menus, the line that turns while the
model works. Those come out as they were last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from everturn.sources.terminal import gemini_screen, prompts
from everturn.sources.terminal.coverage import ScreenWitness
from everturn.sources.terminal.frames import PaintedRow, ScreenFrame, ScrolledRow, is_telling
from everturn.sources.terminal.grid import NO_INK
from everturn.sources.terminal.redraws import Redrawing, compare_drawings, is_alike, is_prompt
from everturn.sources.terminal.screen_lines import ScreenTextLine, count_filled

FindLivePart = Callable[[Sequence[str]], int | None]

#: What finds the first row of the part at the bottom that is no text, and what reads the input field in that part.
_LIVE_PARTS: dict[FindLivePart, Callable[[Sequence[str]], str | None]] = {
    prompts.find_live_part: prompts.read_typed,
    gemini_screen.find_live_part: gemini_screen.read_typed,
}
_DRAWN_AGAIN = 0.6  # of the telling lines
_LAST_LINES = 3  # one of which is drawn again when all is
_SCREENS = 3  # looked through above the screen
_SCREEN_END = 60  # lines above the screen, one of which is drawn again
_LONG = 20  # characters of a line that hardly comes twice
_MOST_BLANKS = 100  # lines in a row that are kept
_REACH = 6_000  # characters, beyond twice the size of a drawing, looked through for what it repeats
_UNFINISHED = 3  # frames in a row that are passed over because the input field is missing
_LAST_WORDS = re.compile(r"[A-Za-z0-9$%~]")
_REST = PaintedRow("", "", "")  # in the place of a row that holds the end of the one above
_AHEAD = 6  # lines among which the one that scrolls off is looked for


class MainLine(ScreenTextLine):
    """A line of the main screen."""

    __slots__ = ("given", "seen", "shown")

    def __init__(self, row: PaintedRow, moment: _Moment) -> None:
        super().__init__(row, *moment)
        self.shown = True  # it is on the screen
        self.seen = 0  # frames it was in
        self.given = False  # it came out before

    def draw(self, row: PaintedRow, moment: _Moment) -> None:
        """Take the row as what the line shows from now on."""
        if row is not self.row:
            self.given = self.given and row.text == self.row.text
            self.write(row, *moment)


class _Moment(NamedTuple):
    """Where and when a frame was drawn."""

    first: int
    last: int
    at: int | None


class Scrollback:
    """The lines of the main screen since the last `take`. `witness` sees what is in the input field."""

    def __init__(self, witness: ScreenWitness) -> None:
        self._witness = witness
        self._firm: list[MainLine] = []  # above what may be drawn again
        self._before: list[MainLine] = []  # was cleared away, and may be drawn again
        self._whole = False  # what scrolled off may be drawn again too
        self._lines: list[MainLine] = []  # the text since then
        self._top = 0  # lines that have left the screen
        self._live: list[PaintedRow] = []  # rows at the bottom that are no text
        self._live_moment = _Moment(0, 0, None)
        self._live_given: list[PaintedRow] = []
        self._last_words: list[MainLine] = []  # printed after a known program ended
        self._program: FindLivePart | None = None
        self._unfinished = 0
        self._emptied = False  # the input field was empty in the last frame
        self._settled = False  # a complete frame of a known program was seen
        self._columns = 0
        self._cropped: dict[str, PaintedRow] = {}  # rows as they were before the screen became narrower
        self._blanks = 0  # scrolled off in a row
        self._place = 0  # in the recording: where the last row was complete

    # events -----------------------------------------------------------------------------------------------------------
    def scroll(self, event: ScrolledRow) -> None:
        """Take in a row that left the screen."""
        moment = _Moment(self._place, event.end, event.at)
        self._place = event.end
        row = self._cropped.get(event.row.text, event.row)
        line = self._leaving_line(row)
        if line is None:
            line = MainLine(row, moment)
            self._lines.insert(self._top, line)
        line.draw(row, moment)
        line.shown = False
        self._top = self._lines.index(line, self._top) + 1
        if self._is_void(event):
            self._top -= 1
            del self._lines[self._top]
        else:
            line.row = _slim_row(line.row)

    def _leaving_line(self, row: PaintedRow) -> MainLine | None:
        """Return the line that the row shows; lines above it on the screen were taken away."""
        shown = []
        for line in self._lines[self._top :]:
            if line.shown:
                shown.append(line)
            if len(shown) > _AHEAD:
                break
        for number, line in enumerate(shown):
            if line.row.text == row.text or (number == 0 and (not line.row.text or is_alike(line.row.text, row.text))):
                for above in shown[:number]:
                    above.shown = False
                return line
        if shown:  # it was painted over before it left
            shown[0].shown = False
        self._top = self._lines.index(shown[0], self._top) + 1 if shown else len(self._lines)
        return None

    def _is_void(self, event: ScrolledRow) -> bool:
        """Return whether it is one blank too many: a program can scroll a whole screen away with four bytes."""
        self._blanks = 0 if event.row.text else self._blanks + 1
        return self._blanks > _MOST_BLANKS

    def see(self, frame: ScreenFrame) -> None:
        """Take in the screen as it is at a mark."""
        rows = self._restore_cropped(frame.rows)
        texts = [row.text for row in rows]
        live = self._live_start(texts)
        moment = _Moment(frame.start, frame.end, frame.at)
        self._place = frame.end
        if self._is_erased(texts):
            self._clear(whole=True)
        elif self._is_unfinished(live, frame.why):
            if frame.why == "end":
                self._add_last_words(rows, moment)
                self._live = self._live if live is not None else []
        else:
            self._update(rows[: count_filled(rows[:live])], moment)
            self._live = list(rows[live:]) if live is not None else []
            self._live_moment = moment
            if live is not None:
                self._see_field(texts[live:], frame)
            if live is not None and self._before:
                self._decide()
        if frame.why in ("clear", "forget"):
            self._clear(whole=self._program is not None or frame.why == "forget")

    def _see_field(self, texts: Sequence[str], frame: ScreenFrame) -> None:
        """Tell the witness what is in the input field. One that is wiped to be drawn anew is empty in one frame only."""
        typed = _LIVE_PARTS[self._program](texts) if self._program is not None else None
        if typed or self._emptied:
            self._witness.see_field(typed, frame)
        self._emptied = typed == ""

    def take(self) -> list[ScreenTextLine]:
        """Return all lines so far; they do not come again."""
        self._decide(last=True)
        live = self._live[: count_filled(self._live)]
        lines: list[ScreenTextLine] = [
            line for line in self._firm + self._lines if not line.given and line.row is not _REST
        ]
        if live != self._live_given:
            lines += [MainLine(row, self._live_moment) for row in live]
        lines += self._last_words
        self._live_given, self._last_words = live, []
        self._firm = []
        self._lines = [line for line in self._lines[self._top :] if line.shown]
        self._top = 0
        for line in self._lines:
            line.given = True
        return lines

    # frames -----------------------------------------------------------------------------------------------------------
    def _live_start(self, texts: Sequence[str]) -> int | None:
        """Return the first row of the live part, by the program whose screen it is."""
        known = self._program is not None and self._unfinished <= _UNFINISHED
        for find in (self._program,) if known else _LIVE_PARTS:
            if find is not None and (found := find(texts)) is not None:
                self._program = find
                return found
        return None

    def _restore_cropped(self, rows: Sequence[PaintedRow]) -> Sequence[PaintedRow]:
        """Return the rows with those that a narrower screen cut off at its edge as they were before."""
        columns = len(rows[0].cells) if rows else 0
        if columns < self._columns:
            whole = [line.row for line in self._lines[self._top :] if line.shown and len(line.row.cells) > columns]
            for row in rows:
                if len(row.text) > columns // 2:
                    same = (old for old in whole if len(old.text) > len(row.text) and old.text.startswith(row.text))
                    self._cropped[row.text] = next(same, row)
        self._columns = columns
        return [self._cropped.get(row.text, row) for row in rows] if self._cropped else rows

    def _join_folded(self, old: Sequence[MainLine], new: Sequence[MainLine]) -> None:
        """Show whole again what was printed once more into a narrower screen, which folds long lines at its edge."""
        columns = self._columns
        whole = {line.row.cells[:columns].rstrip(): line.row for line in old if len(line.row.text) > columns}
        for line, below in pairwise(new) if whole else ():
            row = whole.get(line.row.cells.rstrip())
            if row is not None and below.row.cells.rstrip() == row.cells[columns:].rstrip():
                self._cropped |= {line.row.text: row, below.row.text: _REST}
                line.row, below.row = row, _REST

    def _is_erased(self, texts: Sequence[str]) -> bool:
        """Return whether a known program wiped its screen row by row, to draw it anew."""
        shown = bool(self._live) or any(line.shown for line in self._lines[self._top :])
        return self._program is not None and shown and not any(texts)

    def _is_unfinished(self, live: int | None, why: str) -> bool:
        """Return whether a frame may have been caught while a known program was drawing it.

        The input field comes last: without it a frame is not complete. What stands there when the recording ends is no
        settled frame, unless it is the only one.
        """
        if why == "end" and self._settled:
            return True
        if live is not None or self._program is None or why not in ("pause", "jump"):
            self._unfinished = 0
            self._settled = self._settled or live is not None
            return False
        self._unfinished += 1
        return self._unfinished <= _UNFINISHED

    def _add_last_words(self, rows: Sequence[PaintedRow], moment: _Moment) -> None:
        """Take from a screen without an input field what a shell prints: known programs indent or mark all they say."""
        known = {line.row.text for line in self._lines} | {row.text for row in self._live}
        said = [row for row in rows if _LAST_WORDS.match(row.text) and row.text not in known]
        self._last_words = [MainLine(row, moment) for row in (PaintedRow("", "", ""), *said)]

    def _update(self, rows: Sequence[PaintedRow], moment: _Moment) -> None:
        """Bring the lines on the screen up to date. Only those between equal rows at both ends are compared."""
        lines = self._lines
        start, first = self._skip_equal(rows, moment)
        end, last = len(lines), len(rows)
        while end > start and last > first:
            line = lines[end - 1]
            if line.shown:
                if line.row.text != rows[last - 1].text:
                    break
                line.draw(rows[last - 1], moment)
                line.seen += 1
                last -= 1
            end -= 1
        if start < end or first < last:
            start = self._find_start(start, end, rows[first:last])
            lines[start:end] = self._merge_rows(lines[start:end], rows[first:last], moment)
            self._top = next((n for n in range(min(start, self._top), len(lines)) if lines[n].shown), len(lines))

    def _find_start(self, start: int, end: int, rows: Sequence[PaintedRow]) -> int:
        """Return the first line that rows draw again: some of those above may have left the screen before."""
        told = [row.text for row in rows if is_telling(row.text)]
        if start > self._top or self._program is None or len(told) < _LAST_LINES:
            return start
        first = max(0, start - _SCREENS * len(rows))
        above = [line.row.text for line in self._lines[first:start]]
        here = {line.row.text for line in self._lines[start:end]}
        if told[0] in here or told[0] not in above or told[1] not in above:
            return start
        drawing = compare_drawings(above, [row.text for row in rows], anywhere=True)
        found = [place for place in drawing.places if place >= 0]
        return first + found[0] if len(found) >= _LAST_LINES and any(drawing.drawn[-_SCREEN_END:]) else start

    def _skip_equal(self, rows: Sequence[PaintedRow], moment: _Moment) -> tuple[int, int]:
        """Return the first line and the first row that differ."""
        lines, number, row = self._lines, self._top, 0
        while number < len(lines) and row < len(rows):
            line = lines[number]
            if line.shown:
                if line.row is not rows[row]:
                    if line.row.text != rows[row].text:
                        break
                    line.draw(rows[row], moment)
                line.seen += 1
                row += 1
            number += 1
        while number < len(lines) and not lines[number].shown and row == len(rows):
            number += 1
        return number, row

    def _merge_rows(self, old: list[MainLine], rows: Sequence[PaintedRow], moment: _Moment) -> list[MainLine]:
        new = [MainLine(row, moment) for row in rows]
        repainted = self._program is None and len(old) == len(new)
        if repainted:  # row by row, in the same place
            old = [line for line in old if line.seen > 1 or not line.shown or not is_telling(line.row.text)]
        texts = [line.row.text for line in new]
        return _merge_lines(old, new, compare_drawings([line.row.text for line in old], texts))

    # clearing ---------------------------------------------------------------------------------------------------------
    def _clear(self, whole: bool) -> None:
        """Set aside what was on the screen, and what scrolled off when it is the `whole` text that will be drawn anew."""
        if self._before and self._lines:
            self._decide()
        self._whole = whole or bool(self._before and self._whole)
        if not whole:
            self._firm += self._lines[: self._top]
            del self._lines[: self._top]
        for line in self._lines:
            line.shown = False
        self._before += self._lines
        self._lines, self._top, self._live = [], 0, []
        self._cropped = {}

    def _decide(self, last: bool = False) -> None:
        """Find out whether what was cleared away has been drawn again since; in the `last` drawing, perhaps not all of it."""
        if not self._before or not self._lines:
            self._firm += self._before
            self._before = []
            return
        old, new = self._take_before(None if last else _REACH + 2 * sum(len(line.row.text) for line in self._lines))
        known = self._program is not None
        texts = {line.row.text for line in new if line.row.text}
        if not known and not any(line.row.text in texts for line in old):  # seen at a glance
            self._firm += old
            return
        self._join_folded(old, new)
        drawing = compare_drawings([line.row.text for line in old], [line.row.text for line in new], anywhere=True)
        _mark_copies(old, drawing)
        if last and known and _is_begun(new, drawing.places):  # the rest of the drawing was still to come
            self._lines, self._top = [], 0
        elif _is_repeated(old, drawing.drawn) or (known and _has_prompts(new, drawing.places)):
            shown = next((line for line in self._lines[self._top :]), None)
            self._lines = _merge_lines(old, new, drawing)
            self._top = self._lines.index(shown) if shown is not None else len(self._lines)
            return
        self._firm += old

    def _take_before(self, most: int | None) -> tuple[list[MainLine], list[MainLine]]:
        """Return the last of the lines that may have been drawn again, `most` characters of them, and the new ones."""
        old: list[MainLine] = []
        size = 0
        for lines in (self._before, self._firm if self._whole else []):
            while lines and (most is None or size < most):
                old.append(lines.pop())
                size += len(old[-1].row.text)
        self._firm += self._before
        self._before = []
        return old[::-1], self._lines


def _is_repeated(old: Sequence[MainLine], drawn: Sequence[bool]) -> bool:
    """Return whether a drawing is the old one once more: most of it comes again, or one of its last lines."""
    telling = [again for line, again in zip(old, drawn, strict=True) if is_telling(line.row.text)]
    return bool(telling) and (any(telling[-_LAST_LINES:]) or sum(telling) >= _DRAWN_AGAIN * len(telling))


def _mark_copies(old: Sequence[MainLine], drawing: Redrawing) -> None:
    """Count as drawn again what stands twice among lines that were, and once in the drawing: one of the two was a leftover."""
    again = [number for number, drawn in enumerate(drawing.drawn) if drawn]
    texts = {old[number].row.text for number in again if len(old[number].row.text) >= _LONG}
    for number in range(again[0], again[-1]) if again else ():
        text = old[number].row.text
        if text in texts and not is_prompt(text):
            drawing.drawn[number] = True


def _has_prompts(new: Sequence[MainLine], places: Sequence[int]) -> bool:
    """Return whether a drawing shows a prompt again. A conversation that just began shows at most the command for that."""
    return any(
        place >= 0 and is_prompt(line.row.text) and not line.row.text.lstrip("❯> ").startswith("/")
        for line, place in zip(new, places, strict=True)
    )


def _is_begun(new: Sequence[MainLine], places: Sequence[int]) -> bool:
    """Return whether a drawing has nothing that the old one had not."""
    return all(place >= 0 for line, place in zip(new, places, strict=True) if is_telling(line.row.text))


def _merge_lines(old: list[MainLine], new: list[MainLine], drawing: Redrawing) -> list[MainLine]:
    """Return the new lines, and in their places the old ones that were not drawn again."""
    free = [line for line, place in zip(new, drawing.places, strict=True) if place < 0 and is_telling(line.row.text)]
    moved = Counter(line.row.text for line in free)
    merged: list[MainLine] = []
    done = waiting = 0  # old lines and new ones that are in place
    for number, place in enumerate([*drawing.places, len(old)]):
        if place < 0:
            continue
        kept = [line for line, again in zip(old[done:place], drawing.drawn[done:place], strict=True) if not again]
        merged += _remaining(kept, new[waiting:number], moved) + new[waiting:number]
        if number < len(new):
            _pass_evidence(old[place], new[number])
            merged.append(new[number])
        done, waiting = max(done, place), number + 1
    return merged


def _remaining(old: list[MainLine], new: list[MainLine], moved: Counter[str]) -> list[MainLine]:
    """Return the old lines that none of the new ones in their place shows, and that are not drawn elsewhere (`moved`).

    Blanks and frames stay only between such lines.
    """
    free = [line for line in new if is_telling(line.row.text)]
    kept: list[MainLine] = []
    for line in old:
        text = line.row.text
        if is_telling(text):
            own = next((other for other in free if is_alike(text, other.row.text)), None)
            if own is not None:
                free.remove(own)
                moved[own.row.text] -= 1
                _pass_evidence(line, own)
                continue
            if moved[text] > 0 and not is_prompt(text):
                moved[text] -= 1
                continue
        elif not kept or not (text or kept[-1].row.text):
            continue
        line.shown = False
        kept.append(line)
    while kept and not is_telling(kept[-1].row.text):
        kept.pop()
    return kept


def _pass_evidence(old: MainLine, new: MainLine) -> None:
    """Let a line that was drawn before keep when that was."""
    if old.row.text == new.row.text or is_alike(old.row.text, new.row.text):
        new.first, new.at = min(old.first, new.first), old.at
        new.seen, new.given = old.seen, old.given and old.row.text == new.row.text
        if old.row.text == new.row.text:
            new.last = min(old.last, new.last)


def _slim_row(row: PaintedRow) -> PaintedRow:
    """Return a row that will not change any more without the cells it does not need: long logs have many."""
    return row if row.inks.strip(NO_INK) else PaintedRow(row.text, row.text, "")
