"""One stay on the alternate screen: frames in, documents out, in the order they began.

A frame goes on with the document at hand, goes back to an earlier one (a menu was closed), or begins a new one. What a
full-screen program shows around the text that scrolls (title, input, status, a sidebar) is kept apart.

A recording as one clean transcript.

    transcribe(data, name, timing)

Frames of the alternate screen are joined by `views`; the main screen is what scrolled off it and what it showed in the
end (`scrollback`). One after the other they give the segments. Any bytes give a transcript.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from everturn.sources.terminal import boxes, codex_screen, early_boxes, panels
from everturn.sources.terminal.chrome import Chrome, Sidebar
from everturn.sources.terminal.coverage import ScreenWitness
from everturn.sources.terminal.frames import Frames, PaintedRow, ScreenFrame, ScreenLayout, is_telling
from everturn.sources.terminal.grid import NO_INK, Inks
from everturn.sources.terminal.recordings import read_recording
from everturn.sources.terminal.screen_lines import ScreenTextLine
from everturn.sources.terminal.screen_text import ScreenText
from everturn.sources.terminal.scrollback import Scrollback
from everturn.sources.terminal.talks import is_other_session
from everturn.sources.terminal.transcript import (
    Run,
    TerminalRecording,
    TerminalTranscript,
    TranscriptLine,
    TranscriptSegment,
)

FindLayout = Callable[[Sequence[PaintedRow]], ScreenLayout | None]
_LAYOUTS: tuple[FindLayout, ...] = (
    boxes.find_layout,
    panels.find_layout,
    codex_screen.find_layout,
    early_boxes.find_layout,
)
_FIXED: dict[str, Callable[[str], bool]] = {"boxes": boxes.is_fixed, "panels": panels.is_end_of_turn}
_EARLIER = 4  # documents that may be gone back to
_FLEETING = 8  # documents of one frame each in a row: a screen that changes as a whole is not a text


class ScreenView:
    """The documents of one stay. `text_of` gives the text of cells."""

    def __init__(self, text_of: Callable[[str], str], witness: ScreenWitness) -> None:
        self.documents: list[ScreenText] = []
        self._text_of = text_of
        self._current: ScreenText | None = None
        self._chrome, self._sidebar = Chrome(), Sidebar(text_of)
        self._whole: Sequence[PaintedRow] = ()  # rows of the last frame
        self._rows: Sequence[PaintedRow] = ()  # and without the sidebar
        self._known = False  # a layout was found
        self._columns = 0
        self._witness = witness
        self._find_layout: FindLayout | None = None  # of the program at work
        self._home = False  # the program showed its home screen since the last conversation

    def see(self, frame: ScreenFrame) -> None:
        """Take in the next frame."""
        if not any(row.text for row in frame.rows):
            return
        layout = self._layout(frame.rows)
        if layout is not None:
            self._witness.see(layout, frame)
            self._see_known(layout, frame)
        elif self._find_layout is None:
            self._see_unknown(frame)
        else:
            self._witness.see_other(frame)

    def _layout(self, rows: Sequence[PaintedRow]) -> ScreenLayout | None:
        """The layout of a frame, by the program whose layout fits."""
        for find in dict.fromkeys((self._find_layout, *_LAYOUTS)):
            if find is not None and (found := find(rows)) is not None:
                self._find_layout = find
                return found
        return None

    def _see_known(self, layout: ScreenLayout, frame: ScreenFrame) -> None:
        self._home = self._home or layout.state == "home"
        rows = layout.rows
        if layout.state != "talk" or not any(row.text for row in rows):
            return
        if not self._known:  # what was read before the program was known stays as it is
            self.finish()
            self._known, self._current = True, None
        before, columns = self._current, len(frame.rows[0].cells)
        follows = before is not None and not self._home
        # Everything may have been wrapped anew, or be another session.
        same = columns == self._columns and before is not None and not is_other_session(before.title, layout.title)
        document = self._continue(layout, frame) if follows and same else None
        if document is None:
            document = ScreenText(rows, frame, framed=True)
            document.program, document.follows, document.columns = layout.program, follows, columns
            document.cut_top = follows or bool(rows[0].text)
            document.is_fixed = _FIXED.get(layout.program, document.is_fixed)
            self.documents.append(document)
        self._home, self._columns, self._current = False, columns, document
        document.title, document.footer = layout.title or document.title, layout.footer

    def _continue(self, layout: ScreenLayout, frame: ScreenFrame) -> ScreenText | None:
        """Return the document that goes on with a frame: the current one, or an earlier one that somebody went back to."""
        rows, current = layout.rows, self._current
        if current is not None:
            if (shift := frame.shift) is not None:
                current.shift(max(0, shift.top - layout.top), shift.bottom - layout.top, shift.distance, frame)
            if current.stays(rows, frame) or current.place(rows, frame):
                return current
        for earlier in self.documents[-2 : -_EARLIER - 2 : -1]:
            if earlier.columns == self._columns and earlier.shows(rows) and earlier.place(rows, frame):
                return earlier
        return None

    def _see_unknown(self, frame: ScreenFrame) -> None:
        rows = self._sidebar.without(frame.rows)
        same_size = len(rows) == len(self._rows)
        if same_size:
            self._chrome.look(self._rows, rows)
        self._shift(frame)
        if self._current is None or not self._current.stays(self._content(rows), frame):
            if same_size:
                rows = self._look_for_edges(frame.rows, rows)
            self._go_on(self._content(rows), frame)
        self._whole, self._rows = frame.rows, rows

    def finish(self) -> None:
        """No more frames come. A view that never scrolled shows its edges by not changing them."""
        document = self._current
        if document is None or self._known:
            return
        if not document.framed:
            if self._sidebar.find_still(document.begun, document.rows):
                self._drop_sidebar(document)
            self._chrome.top, self._chrome.bottom = self._chrome.still_edges(self._rows)
            document.narrow(self._chrome.top, self._chrome.bottom)
        elif document.rows and self._is_frame(document.rows[-1].text):
            self._chrome.bottom += 1
            document.narrow(0, 1)
        self._note_edges()

    def _shift(self, frame: ScreenFrame) -> None:
        """Follow the terminal when it moved the content up; in other cases the text has to tell what happened."""
        document, shift = self._current, frame.shift
        if document is not None and document.framed and shift is not None:
            top = self._chrome.top
            document.shift(max(0, shift.top - top), shift.bottom - top, shift.distance, frame)

    # edges ----------------------------------------------------------------------------------------------------------
    def _content(self, rows: Sequence[PaintedRow]) -> Sequence[PaintedRow]:
        return rows[self._chrome.top : len(rows) - self._chrome.bottom]

    def _is_frame(self, text: str) -> bool:
        """Whether a row above the footer looks like one inside it: the upper edge of an input box."""
        footer = self._rows[len(self._rows) - self._chrome.bottom :]
        return bool(text) and not is_telling(text) and any(row.text == text for row in footer)

    def _look_for_edges(self, whole: Sequence[PaintedRow], rows: Sequence[PaintedRow]) -> Sequence[PaintedRow]:
        """Something moved: see what did not. The rows, without a sidebar when there turns out to be one."""
        if self._sidebar.find(self._whole, whole):
            rows = self._sidebar.without(whole)
            if self._current is not None:
                self._drop_sidebar(self._current)
        top, bottom = self._chrome.top, self._chrome.bottom
        if self._chrome.note_scroll(self._rows, rows) and self._current is not None:
            self._current.framed = True
            more_top, more_bottom = self._chrome.top - top, self._chrome.bottom - bottom
            if more_top < 0 or more_bottom < 0:
                self._current.widen(self._content(self._rows), -more_top)
            else:
                self._current.narrow(more_top, more_bottom)
        return rows

    def _drop_sidebar(self, document: ScreenText) -> None:
        self._rows = self._sidebar.without(self._whole)
        document.repaint(self._sidebar.left)

    def _note_edges(self) -> None:
        """Title and footer of the document at hand."""
        if self._current is None:
            return
        top, bottom = self._chrome.top, self._chrome.bottom
        title = [row.text.strip() for row in self._rows[:top]] + self._sidebar.text(self._whole)
        footer = [row.text.strip() for row in self._rows[len(self._rows) - bottom :]]
        self._current.title, self._current.footer = "\n".join(filter(None, title)), "\n".join(filter(None, footer))

    # documents ------------------------------------------------------------------------------------------------------
    def _go_on(self, rows: Sequence[PaintedRow], frame: ScreenFrame) -> None:
        if not any(row.text for row in rows):
            return
        if self._current is not None and self._current.place(rows, frame):
            return
        self._note_edges()
        for document in self.documents[: -_EARLIER - 1 : -1]:
            if document is not self._current and document.place(rows, frame, anywhere=False):
                self._current = document
                return
        self._current = ScreenText(rows, frame, framed=bool(self._chrome.top or self._chrome.bottom))
        self.documents.append(self._current)
        if len(self.documents) > _FLEETING and not any(known.frames for known in self.documents[-_FLEETING - 1 : -1]):
            del self.documents[-_FLEETING - 1]


_INKED = re.compile(f"([^{NO_INK}])\\1*")


def transcribe(
    data: bytes, name: str = "", timing: bytes | None = None, witness: ScreenWitness | None = None
) -> TerminalTranscript:
    """Return everything a person could have read in a recording, in order. `witness` sees every frame as well."""
    return transcribe_recording(read_recording(data, name, timing), witness)


def transcribe_recording(recording: TerminalRecording, witness: ScreenWitness | None = None) -> TerminalTranscript:
    """Return what `transcribe` does, of a recording that was taken apart."""
    frames = Frames(recording)
    reel = _SegmentCollector(frames, witness or ScreenWitness())
    for event in frames:
        if not isinstance(event, ScreenFrame):
            reel.main.scroll(event)
        elif event.alternate:
            reel.alternate(event)
        else:
            reel.main_frame(event)
    ended = recording.ended
    if ended is None and recording.started is not None and frames.elapsed is not None:
        ended = recording.started + round(frames.elapsed * 1000)
    return TerminalTranscript(
        tuple(reel.segments),
        recording.columns,
        recording.rows,
        started=recording.started,
        ended=ended,
        command=recording.command,
        exit_status=recording.exit_status,
        zone=recording.zone,
        emptied=tuple(reel.witness.emptied),
    )


class _SegmentCollector:
    """The segments so far."""

    def __init__(self, frames: Frames, witness: ScreenWitness) -> None:
        self.segments: list[TranscriptSegment] = []
        self.main = Scrollback(witness)
        self.witness = witness
        self._marked = False
        self._text_of = frames.screen.alphabet.characters
        self._palette = frames.screen.palette
        self._view: ScreenView | None = None

    def alternate(self, frame: ScreenFrame) -> None:
        """A frame of the alternate screen."""
        if self._view is None:
            self._view = ScreenView(self._text_of, self.witness)
        # A program that marks its updates did not finish the one in which the recording ends.
        if frame.why != "end" or not self._marked:
            self._view.see(frame)
        self._marked = self._marked or frame.why in ("sync", "show")
        if frame.why in ("leave", "end"):
            self._close_view()

    def main_frame(self, frame: ScreenFrame) -> None:
        """A frame of the main screen."""
        self.main.see(frame)
        if frame.why in ("enter", "end"):
            self._add(self.main.take(), alternate=False)

    def _close_view(self) -> None:
        view, self._view = self._view, None
        if view is not None:
            view.finish()
            for document in view.documents:
                lines, gone = document.kept_lines()
                around = {"title": document.title, "footer": document.footer, "program": document.program}
                self._add(lines, cut_top=document.cut_top, follows=document.follows, **around)
                for group in gone:
                    self._add(group, cut_top=True, gone=True, **around)

    def _add(self, lines: Sequence[ScreenTextLine], **facts: Any) -> None:
        start, end = 0, len(lines)
        while start < end and not lines[start].row.text:
            start += 1
        while start < end and not lines[end - 1].row.text:
            end -= 1
        if start < end:
            self.segments.append(TranscriptSegment(tuple(self._clean(lines[start:end])), **facts))

    def _clean(self, lines: Sequence[ScreenTextLine]) -> Iterator[TranscriptLine]:
        """The lines with their evidence. Blanks and frames look alike everywhere: theirs is not older than the text above."""
        above = lines[0]
        for line in lines:
            first, last, at = line.first, line.last, line.at
            if is_telling(line.row.text):
                above = line
            elif first < above.first:
                first, last, at = above.first, max(last, above.first), above.at
            yield TranscriptLine(line.row.text, runs(line.row, self._palette), first, last, at, line.row.covered)


def runs(row: PaintedRow, palette: Inks) -> tuple[Run, ...]:
    """The coloured stretches of a row; blanks between two of one colour belong to them."""
    found: list[Run] = []
    for stretch in _INKED.finditer(row.inks):
        cells = row.cells[stretch.start() : stretch.end()]
        end = stretch.start() + len(cells.rstrip(" "))
        start = end - len(cells.strip(" "))
        if start == end:
            continue
        colour = palette.colour(stretch[1])
        if found and found[-1].colour == colour and not row.cells[found[-1].end : start].strip(" "):
            start = found.pop().start
        found.append(Run(start, end, colour))
    return tuple(found)
