"""A recording as one clean transcript.

    transcribe(data, name, timing)

Frames of the alternate screen are joined by `views`; the main screen is what scrolled off it and what it showed in the
end (`scrollback`). One after the other they give the segments. Any bytes give a transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from everturn.sources.terminal.document import ScreenTextLine
from everturn.sources.terminal.frames import Frames, PaintedRow, ScreenFrame
from everturn.sources.terminal.grid import NO_INK, Inks
from everturn.sources.terminal.matching import is_telling
from everturn.sources.terminal.recordings import read_recording
from everturn.sources.terminal.scrollback import Scrollback
from everturn.sources.terminal.transcript import Run, TerminalTranscript, TranscriptLine, TranscriptSegment
from everturn.sources.terminal.views import ScreenView

_INKED = re.compile(f"([^{NO_INK}])\\1*")


def transcribe(data: bytes, name: str = "", timing: bytes | None = None) -> TerminalTranscript:
    """Everything a person could have read in a recording, in order."""
    recording = read_recording(data, name, timing)
    frames = Frames(recording)
    reel = _SegmentCollector(frames)
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
    )


class _SegmentCollector:
    """The segments so far."""

    def __init__(self, frames: Frames) -> None:
        self.segments: list[TranscriptSegment] = []
        self.main = Scrollback()
        self._text_of = frames.screen.alphabet.characters
        self._palette = frames.screen.palette
        self._view: ScreenView | None = None

    def alternate(self, frame: ScreenFrame) -> None:
        """A frame of the alternate screen."""
        if self._view is None:
            self._view = ScreenView(self._text_of)
        self._view.see(frame)
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
                title, footer = view.around(document)
                self._add(document.lines, alternate=True, cut_top=document.cut_top, title=title, footer=footer)

    def _add(
        self, lines: Sequence[ScreenTextLine], alternate: bool, cut_top: bool = False, title: str = "", footer: str = ""
    ) -> None:
        start, end = 0, len(lines)
        while start < end and not lines[start].row.text:
            start += 1
        while start < end and not lines[end - 1].row.text:
            end -= 1
        if start < end:
            self.segments.append(
                TranscriptSegment(tuple(self._clean(lines[start:end])), alternate, cut_top, title, footer)
            )

    def _clean(self, lines: Sequence[ScreenTextLine]) -> Iterator[TranscriptLine]:
        """The lines with their evidence. Blanks and frames look alike everywhere: theirs is not older than the text above."""
        above = lines[0]
        for line in lines:
            first, last, at = line.first, line.last, line.at
            if is_telling(line.row.text):
                above = line
            elif first < above.first:
                first, last, at = above.first, max(last, above.first), above.at
            yield TranscriptLine(line.row.text, runs(line.row, self._palette), first, last, at)


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
