"""Join the screens of one scrolling view into one text.

`ScreenText.place` puts the content rows of a frame where they belong: a row that changed in place is the later drawing of its
line (an answer that grows, a spinner that becomes a result), rows below are added, and rows above (somebody scrolled back
further than before) come in front. A line that is there already is never added a second time. A frame that has nothing in
common with the text is refused.

A line is superseded only by its own later drawing. Lines that left the view for good without being drawn over come out as
groups of their own (`kept_lines`): a prompt that was undone, for example.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from everturn.sources.terminal.chrome import DEEPEST, Alike
from everturn.sources.terminal.frames import PaintedRow, RowBlock, ScreenFrame, blocks, is_telling, overlap
from everturn.sources.terminal.screen_lines import (
    ScreenTextLine,
    begins,
    count_filled,
    goes_on,
    has_gap,
    is_full,
    is_lost,
    keeps_words,
    strip_frame,
)

_SCREENS_AROUND = 2  # looked through above and below where the view stands
_SURE = 3  # telling rows in common that leave no doubt
_SHARE = 0.5  # of the telling rows, where there are fewer
_LEFT, _LONG = 6, 12  # lines after the end of it, characters of one line: how a frame goes on with what is nearly gone
_EXCHANGED = 2  # telling rows gone, from which on more have to have stayed
_BLANK = PaintedRow("", "", "")
_MOST_LOST = 5  # telling lines
_MOST_OTHER = 1  # telling row
_MARGIN = 2  # blank rows that a view may end with
_MOST_REDRAWN = 2  # telling rows that become something else in their place
_NEARLY_ALL = 0.7  # of the telling rows
_END_OF_TEXT = 4  # blank rows at the end of a view that no text has inside
_TITLE = 3  # rows at the top that may stay while the text below is another one


class ScreenText:
    """Lines seen to follow each other, and where the view stands in them."""

    def __init__(self, rows: Sequence[PaintedRow], frame: ScreenFrame, framed: bool) -> None:
        self.lines: list[ScreenTextLine] = []
        self.texts: list[str] = []  # of the lines
        self.top = 0  # the line that stands in the first row
        self.frames = 0  # placed after the first one
        self._floor = 0  # lines above are known to have left the view
        self.cut_top = is_full(rows) and (framed or not has_gap(rows))  # more may stand above
        self.rows = self.begun = rows  # of the last frame, and of the first
        self.framed = framed  # chrome is known: all rows are content
        self.program = self.title = self.footer = ""
        self.columns = 0
        self.follows = False  # see `TranscriptSegment`
        self.is_fixed: Callable[[str], bool] = lambda text: False  # a line that the program never takes back
        self._append(rows[: count_filled(rows)], frame)

    # nothing scrolled -----------------------------------------------------------------------------------------------
    def stays(self, rows: Sequence[PaintedRow], frame: ScreenFrame) -> bool:
        """Take in a frame in which the view stands where it stood; False when that is not sure."""
        if len(rows) != len(self.rows):
            return False
        changed = [number for number, row in enumerate(rows) if row is not self.rows[number]]
        if not self._is_in_place(rows, changed) or self._is_fixed_lost(rows, changed):
            return False
        for number in changed:
            place = self.top + number
            if place < len(self.lines):
                if number or rows[number].text:  # the first row may be hidden
                    self._write(place, rows[number], frame)
            elif rows[number].text:
                self._append(rows[len(self.lines) - self.top : number + 1], frame)
        self._finish_frame(rows, frame)
        return True

    def _is_in_place(self, rows: Sequence[PaintedRow], changed: list[int]) -> bool:
        """Few rows differ, none shows what stood in another row, and the text was not exchanged as a whole.

        Where all words stand where they stood and others came, the view did not move, whatever the new ones repeat.
        """
        written = [row.text for row in self.rows if row.text]
        before = set(written)
        if any(map(is_telling, written)) and not any(is_telling(self.rows[number].text) for number in changed):
            return True
        for number in changed:
            if rows[number].text in before and rows[number].text != self.rows[number].text:
                return False
        gone = self._find_gone_rows(rows, changed)
        if self.program and sum(is_telling(self.rows[number].text) for number in gone) > _MOST_REDRAWN:
            return False
        replaced = sum(bool(rows[number].text) for number in gone)
        return replaced <= max(1, len(written) - replaced) and not self._is_exchanged(gone)

    def _is_fixed_lost(self, rows: Sequence[PaintedRow], changed: list[int]) -> bool:
        """Return whether changed rows would be written over a line that the program never takes back."""
        lines = [(self.texts[self.top + n], rows[n]) for n in changed if self.top + n < len(self.texts)]
        return any(is_telling(row.text) and not keeps_words(text, row) and self.is_fixed(text) for text, row in lines)

    def _find_gone_rows(self, rows: Sequence[PaintedRow], changed: Iterable[int]) -> list[int]:
        """Rows whose text is no longer there, not even as part of it, taken back a little or with another number in it."""
        alike = Alike(rows)
        found = []
        for number in changed:
            old, new = self.rows[number].text, rows[number].text
            if old and old.strip() not in new and not goes_on(old, new) and not alike(old, new):
                found.append(number)
        return found

    def _is_exchanged(self, gone: list[int]) -> bool:
        """Whether the text is another one, though title and status may be the same: a new session, a menu."""
        inner = range(len(self.rows)) if self.framed else range(_TITLE, len(self.rows) - DEEPEST)
        lost = [number for number in gone if number in inner]
        telling = sum(is_telling(self.rows[number].text) for number in lost)
        return telling >= _EXCHANGED and telling > sum(bool(self.rows[number].text) for number in inner) - len(lost)

    # the terminal scrolled ------------------------------------------------------------------------------------------
    def shift(self, first: int, last: int, count: int, frame: ScreenFrame) -> None:
        """The terminal itself moved rows `first` to `last` up by `count`; what is drawn there comes next.

        What stands below stays where it is, so that room for new lines opens above it. Nothing is done where rows above
        stay as well: then it is not the text as a whole that scrolls.
        """
        last = min(last, len(self.rows) - 1)
        if not 0 < count <= last - first or any(row.text for row in self.rows[:first]):
            return
        if any(row.text for row in self.rows[last + 1 :]):
            self._insert(min(self.top + last + 1, len(self.lines)), [_BLANK] * count, frame)
        self.top += count
        self._floor = self.top
        self._append([_BLANK] * (self.top - len(self.lines)), frame)
        moved = [*self.rows[first + count : last + 1], *[_BLANK] * count]
        self.rows = [*self.rows[:first], *moved, *self.rows[last + 1 :]]

    # something scrolled ---------------------------------------------------------------------------------------------
    def place(self, rows: Sequence[PaintedRow], frame: ScreenFrame, anywhere: bool = True) -> bool:
        """Take in a frame where its rows stand: near the view, at the end, or `anywhere`; False when they do not."""
        height = count_filled(rows)
        texts = self._complete_rows(rows[:height])
        found = self._find_blocks(texts, anywhere)
        if found and found[0].distance < self.top and self._count_other(found, rows):
            found = self._find_next(texts) or found
        if not found or self._is_elsewhere(rows, found) or (self.program and self._contradicts(found, rows, height)):
            return False
        found = self._find_above(found[0], rows, texts) + found
        first, last = found[0], found[-1]
        self._replace(last.last + 1 + last.distance, height + last.distance, rows[last.last + 1 : height], frame)
        for block, following in zip(found[-2::-1], found[:0:-1], strict=True):
            between = rows[block.last + 1 : following.first]
            self._write_block(following, rows, frame)
            self._replace(block.last + 1 + block.distance, following.first + following.distance, between, frame)
        self._write_block(first, rows, frame)
        top = self._write_above(rows[: first.first], first.first + first.distance, frame)
        self.top = max(self._floor, top)
        self._finish_frame(rows, frame)
        return True

    def _complete_rows(self, rows: Sequence[PaintedRow]) -> list[str]:
        """Return the texts of rows; of those that something covers, the whole lines near the view that begin like them.

        A line that was never seen whole is taken for the beginning of the row that shows it whole.
        """
        texts = [row.text for row in rows]
        reach = _SCREENS_AROUND * len(rows)
        near = self.lines[max(0, self.top - reach) : self.top + len(self.rows) + reach]
        parts = {line.row.text for line in near if line.row.covered and is_telling(line.row.text)}
        if not parts and not any(row.covered for row in rows):
            return texts
        wholes = {line.row.text for line in near}
        for number, row in enumerate(rows):
            if row.text in wholes or not is_telling(row.text):
                continue
            pool, like = (wholes, str.startswith) if row.covered else (parts, begins)
            fitting = [text for text in pool if like(text, row.text)]
            texts[number] = fitting[0] if len(fitting) == 1 else row.text
        return texts

    def _contradicts(self, found: list[RowBlock], rows: Sequence[PaintedRow], height: int) -> bool:
        """Return whether rows, the last of which are blank from `height` on, only look like the lines they were found at.

        Somebody who scrolls back sees lines that are known. Otherwise the view only goes on: what it showed below the
        lines found may grow or be drawn over, but does not vanish as a whole, and what was sent does not vanish at all.
        """
        last, distance = found[-1].last, found[-1].distance
        if found[0].distance < self.top:
            return self._count_other(found, rows) > _MOST_OTHER or any(self._ends_inside(one, rows) for one in found)
        after = [row.text for row in rows[last + 1 : height]]
        before = self.texts[last + 1 + distance : max(self.top + len(self.rows), height + distance)]
        lost = [old for old in before if is_telling(old) and not any(goes_on(old, new) for new in after)]
        return len(lost) >= _MOST_LOST or any(map(self.is_fixed, lost))

    def _ends_inside(self, block: RowBlock, rows: Sequence[PaintedRow]) -> bool:
        """Return whether the rows below a block leave out the next line of the same paragraph or box.

        Blank rows at the end of the view are its margin.
        """
        last = block.last + block.distance
        both, below = self.texts[last : last + 2], rows[block.last + 1 :]
        shown = bool(below) and (bool(below[0].text) or len(below) > _MARGIN)
        return shown and len(both) == 2 and all(map(is_telling, both)) and not is_telling(below[0].text)

    def _count_other(self, found: list[RowBlock], rows: Sequence[PaintedRow]) -> int:
        """Return how many telling rows are something else than the lines in their place; rows above and below are new.

        Where that are fewer: how many telling lines in their place were out of sight, and are not among the rows.
        """
        common = {number for block in found for number in range(block.first, block.last + 1)}
        inside = range(max(0, -found[0].distance), min(len(rows), len(self.lines) - found[-1].distance))
        other = sum(
            number not in common and is_telling(rows[number].text) and not rows[number].covered for number in inside
        )
        shown = {number + block.distance for block in found for number in range(block.first, block.last + 1)}
        span = range(found[0].first + found[0].distance, min(self.top, len(rows) + found[-1].distance))
        return max(other, sum(place not in shown and is_telling(self.texts[place]) for place in span))

    def shows(self, rows: Sequence[PaintedRow]) -> bool:
        """Return whether nearly all rows are lines of this text: somebody went back to it."""
        texts = [row.text for row in rows[: count_filled(rows)]]
        found = blocks(self.texts, range(len(self.texts)), texts)
        telling = sum(map(is_telling, texts))
        known = sum(is_telling(text) for block in found for text in texts[block.first : block.last + 1])
        own = sum(len(strip_frame(text)) >= _LONG for block in found for text in texts[block.first : block.last + 1])
        return own >= _SURE and known >= telling - _MOST_OTHER

    def _is_elsewhere(self, rows: Sequence[PaintedRow], found: list[RowBlock]) -> bool:
        """Whether only title and status agree, because it is not known yet that they are chrome."""
        if self.framed or len(rows) != len(self.rows) or any(block.distance != self.top for block in found):
            return False
        return self._is_exchanged(self._find_gone_rows(rows, range(len(rows))))

    def _find_blocks(self, texts: list[str], anywhere: bool) -> list[RowBlock]:
        for places in self._search(len(texts), anywhere):
            found = blocks(self.texts, places, texts)
            if self._is_torn(found):
                found = blocks(self.texts, range(self.top, min(len(self.lines), self.top + len(self.rows))), texts)
            far = isinstance(places, range)
            if found and self._is_credible(found, texts) and not (far and self.framed and _is_doubtful(found, texts)):
                return found
        return self._find_one_step(texts) if anywhere and is_full(self.rows) else []

    def _find_above(self, first: RowBlock, rows: Sequence[PaintedRow], texts: list[str]) -> list[RowBlock]:
        """Return blocks of rows above the first one, where lines came in or went between it and what the view showed."""
        place = first.first + first.distance
        known = min(first.first, place - self._floor)
        other = sum(not self._fits(place - number - 1, rows[first.first - number - 1]) for number in range(known))
        if not self.program or other <= _MOST_REDRAWN:
            return []
        matcher = SequenceMatcher(None, self.texts[self.top : place], texts[: first.first], autojunk=False)
        found = [RowBlock(b, b + size - 1, self.top + a - b) for a, b, size in matcher.get_matching_blocks() if size]
        found = [block for block in found if any(map(is_telling, texts[block.first : block.last + 1]))]
        common = sum(is_telling(text) for block in found for text in texts[block.first : block.last + 1])
        return found if 2 * common >= sum(map(is_telling, texts[: first.first])) else []

    def _find_next(self, texts: list[str]) -> list[RowBlock]:
        """Return how the view goes on where it seems to go back to an older text that looks alike, but does not fit as well.

        Rows begin with what the view ended with, word for word.
        """
        view = self.texts[self.top : self.top + len(self.rows)]
        for step in range(1, len(view)):
            same = 0
            while same < min(len(view) - step, len(texts)) and view[step + same] == texts[same]:
                same += 1
            if sum(map(is_telling, texts[:same])) >= _SURE and not any(map(is_telling, view[step + same :])):
                return [RowBlock(0, same - 1, self.top + step)]
        return []

    def _is_torn(self, found: list[RowBlock]) -> bool:
        """Return whether lines that were out of sight would vanish from between two blocks: one of them is somewhere else."""
        for before, after in pairwise(found):
            between = range(before.last + before.distance + 1, after.first + after.distance)
            hidden = [place for place in between if not self.top <= place < self.top + len(self.rows)]
            if sum(is_telling(self.texts[place]) for place in hidden) >= _MOST_LOST:
                return True
        return False

    def _find_one_step(self, texts: list[str]) -> list[RowBlock]:
        step = overlap(self.texts[self.top : self.top + len(self.rows)], texts)
        return [step._replace(distance=self.top + step.distance)] if step else []

    def _search(self, height: int, anywhere: bool) -> Iterator[Sequence[int]]:
        length = len(self.lines)
        reach = _SCREENS_AROUND * max(height, len(self.rows))
        near = range(max(self._floor, self.top - reach), min(length, self.top + len(self.rows) + reach))
        tail = range(max(near.stop, length - reach), length)
        yield [*near, *tail]
        if anywhere and len(near) + len(tail) < length:
            self._floor = 0
            yield range(length)

    def _is_credible(self, found: list[RowBlock], texts: list[str]) -> bool:
        """Whether enough rows agree. A view that was not full yet has no reason to scroll."""
        common = [text for block in found for text in texts[block.first : block.last + 1] if is_telling(text)]
        if len(common) >= _SURE:
            return True
        enough = len(common) >= max(1.0, _SHARE * sum(map(is_telling, texts)))
        if found[0].distance == self.top:
            begins = next((number for number, text in enumerate(texts) if is_telling(text)), 0)
            return enough or (len(common) > 1 and found[0].first <= begins <= found[0].last)
        return is_full(self.rows) and (enough or self._goes_on(found, texts, common))

    def _goes_on(self, found: list[RowBlock], texts: list[str], common: list[str]) -> bool:
        """Whether the frame begins with what the document ends with."""
        first, last = found[0], found[-1]
        left = len(self.lines) - (last.last + last.distance)
        return not any(texts[: first.first]) and left <= _LEFT and max(map(len, common), default=0) >= _LONG

    def _write_block(self, block: RowBlock, rows: Sequence[PaintedRow], frame: ScreenFrame) -> None:
        for number in range(block.first, block.last + 1):
            self._write(number + block.distance, rows[number], frame)

    def _write_above(self, rows: Sequence[PaintedRow], place: int, frame: ScreenFrame) -> int:
        """Write the rows above all that was recognised; they end before line `place`. Return the line of the first one.

        A blank does not wipe out what was there. Rows that are something else than the lines in their place came in
        between: those lines have left the view at the top.
        """
        known = min(len(rows), place - self._floor)
        same = 0
        while same < known and self._fits(place - same - 1, rows[-same - 1]):
            same += 1
        other = sum(not self._fits(place - number - 1, rows[-number - 1]) for number in range(same, known))
        if self.program and other > _MOST_REDRAWN:
            self._write_rows_above(rows[len(rows) - same :], place, frame)
            self._insert(place - same, rows[: len(rows) - same], frame)
            return place - same
        self._write_rows_above(rows[len(rows) - known :], place, frame)
        self._insert(self._floor, rows[: len(rows) - known], frame, above=self._floor == 0)
        return place - len(rows)

    def _write_rows_above(self, rows: Sequence[PaintedRow], place: int, frame: ScreenFrame) -> None:
        for number, row in enumerate(reversed(rows), 1):
            if row.text:
                self._write(place - number, row, frame)

    def _fits(self, place: int, row: PaintedRow) -> bool:
        old = self.texts[place]
        if not row.text:
            return not self.is_fixed(old)
        if not is_telling(row.text):
            return not is_telling(old)
        return old == row.text or goes_on(old, row.text) or (row.covered and old.startswith(row.text))

    # the lines ------------------------------------------------------------------------------------------------------
    def _finish_frame(self, rows: Sequence[PaintedRow], frame: ScreenFrame) -> None:
        """Finish a frame. Where its rows end in blanks, the text ends there too: lines that followed are gone."""
        self.rows = rows
        self.frames += 1
        self._floor = 0
        end, below = self.top + count_filled(rows), self.top + len(rows)
        for line in self.lines[self.top : end]:
            line.seen = frame.end
        if (below - end >= _END_OF_TEXT or len(self.lines) <= below) and any(map(is_telling, self.texts[end:])):
            self._remove(end, len(self.lines))

    def _remove(self, start: int, end: int) -> None:
        """Take lines out of the view. The line above remembers them."""
        if lines := self.lines[start:end]:
            if start and any(is_telling(line.row.text) for line in lines):
                self.lines[start - 1].lose(lines)
            del self.lines[start:end], self.texts[start:end]

    def kept_lines(self) -> tuple[list[ScreenTextLine], list[list[ScreenTextLine]]]:
        """Return the lines in their order, and groups of lines that vanished without being drawn again.

        A line below one that was added after it was last seen is no longer there: the view ended above it.
        """
        kept: list[ScreenTextLine] = []
        gone: list[list[ScreenTextLine]] = []
        stale: list[ScreenTextLine] = []
        newest = 0
        for line in self.lines:
            if line.seen < newest:
                stale.append(line)
                continue
            newest = max(newest, line.born)
            kept.append(line)
            gone += [stale] if stale else []
            stale = []
        alive = {line.row.text for line in kept}
        gone += [stale, *(group for line in self.lines for group in line.gone or ())]
        return kept, [group for group in gone if any(is_lost(line, alive) for line in group)]

    def _write(self, place: int, row: PaintedRow, frame: ScreenFrame) -> None:
        line = self.lines[place]
        if line.is_left_over(row):
            line.seen = frame.end
            return
        if self.program and is_telling(line.row.text) and not keeps_words(line.row.text, row):
            line.lose([ScreenTextLine(line.row, line.first, line.last, line.at)])
        line.write(row, frame.start, frame.end, frame.at)
        self.texts[place] = line.row.text

    def _append(self, rows: Sequence[PaintedRow], frame: ScreenFrame) -> None:
        self._insert(len(self.lines), rows, frame)

    def _insert(self, place: int, rows: Sequence[PaintedRow], frame: ScreenFrame, above: bool = False) -> None:
        born = 0 if above else frame.end
        self.lines[place:place] = [ScreenTextLine(row, frame.start, frame.end, frame.at, born) for row in rows]
        self.texts[place:place] = [row.text for row in rows]

    def _replace(self, start: int, end: int, rows: Sequence[PaintedRow], frame: ScreenFrame) -> None:
        """Lines `start` to `end` become these rows; the first ones are taken for the same lines, changed."""
        end = min(end, len(self.lines))
        kept = min(len(rows), end - start)
        if self._is_other(start, rows[:kept]):
            self._remove(start, end)
            self._insert(start, rows, frame)
            return
        for number in range(kept):
            self._write(start + number, rows[number], frame)
        self._remove(start + kept, end)
        self._insert(start + kept, rows[kept:], frame)

    def _is_other(self, start: int, rows: Sequence[PaintedRow]) -> bool:
        """Return whether rows have little in common with the lines in their place: several were there, and went."""
        pairs = [(self.texts[start + number], row.text) for number, row in enumerate(rows)]
        telling = [(old, new) for old, new in pairs if is_telling(old) and is_telling(new)]
        same = sum(goes_on(old, new) for old, new in telling)
        return len(telling) >= _SURE and 2 * same < len(telling)

    # what turned out later ------------------------------------------------------------------------------------------
    def narrow(self, top: int, bottom: int) -> None:
        """The first and last rows of the view are chrome, as is known now: they leave the document."""
        end = self.top + len(self.rows)
        if bottom and end >= len(self.lines):
            del self.lines[end - bottom :], self.texts[end - bottom :]
        if self.top == 0 and [row.text for row in self.rows[:top]] == self.texts[:top]:
            del self.lines[:top], self.texts[:top]
        else:
            self.top += top
        self.rows = self.rows[top : len(self.rows) - bottom]

    def widen(self, rows: Sequence[PaintedRow], top: int) -> None:
        """Rows that were taken for chrome are content; `top` of them at the top."""
        self.rows = rows
        self.top = max(0, self.top - top)

    def repaint(self, change: Callable[[PaintedRow], PaintedRow]) -> None:
        """Every line and row becomes another one: a sidebar was found and is taken off."""
        for place, line in enumerate(self.lines):
            line.row = change(line.row)
            self.texts[place] = line.row.text
        self.rows = [change(row) for row in self.rows]
        self.begun = [change(row) for row in self.begun]


def _is_doubtful(found: list[RowBlock], texts: list[str]) -> bool:
    """Return whether rows found far from the view are too few: a view that jumps back shows lines that are known."""
    common = sum(is_telling(text) for block in found for text in texts[block.first : block.last + 1])
    return common < _NEARLY_ALL * sum(map(is_telling, texts))
