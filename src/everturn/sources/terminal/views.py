"""One stay on the alternate screen: frames in, documents out, in the order they began.

A frame goes on with the document at hand, goes back to an earlier one (a menu was closed), or begins a new one. What a
full-screen program shows around the text that scrolls (title, input, status, a sidebar) is kept apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from everturn.sources.terminal.chrome import Chrome
from everturn.sources.terminal.document import ScreenText
from everturn.sources.terminal.frames import PaintedRow, ScreenFrame
from everturn.sources.terminal.matching import is_telling
from everturn.sources.terminal.sidebar import Sidebar

_EARLIER = 4  # documents that may be gone back to
_FLEETING = 8  # documents of one frame each in a row: a screen that changes as a whole is not a text


class ScreenView:
    """The documents of one stay. `text_of` gives the text of cells."""

    def __init__(self, text_of: Callable[[str], str]) -> None:
        self.documents: list[ScreenText] = []
        self._text_of = text_of
        self._current: ScreenText | None = None
        self._chrome, self._sidebar = Chrome(), Sidebar(text_of)
        self._whole: Sequence[PaintedRow] = ()  # rows of the last frame
        self._rows: Sequence[PaintedRow] = ()  # and without the sidebar
        self._around: dict[int, tuple[str, str]] = {}

    def see(self, frame: ScreenFrame) -> None:
        """Take in the next frame."""
        if not any(row.text for row in frame.rows):
            return
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
        if document is None:
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

    def around(self, document: ScreenText) -> tuple[str, str]:
        """Title and footer as they were last."""
        return self._around.get(id(document), ("", ""))

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
        top, bottom = self._chrome.top, self._chrome.bottom
        title = [row.text.strip() for row in self._rows[:top]] + self._sidebar.text(self._whole)
        footer = [row.text.strip() for row in self._rows[len(self._rows) - bottom :]]
        self._around[id(self._current)] = "\n".join(filter(None, title)), "\n".join(filter(None, footer))

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
