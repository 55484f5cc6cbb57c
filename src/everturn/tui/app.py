"""The program: its screens and how they follow each other.

`run` shows it and returns the command to start after it has ended: one that resumes a session, or none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App
from textual.screen import Screen

from everturn.errors import EverturnError
from everturn.tui.actions import StartCommand, Write
from everturn.tui.archive import ScreenArchive
from everturn.tui.screen_frame import BrowserScreen
from everturn.tui.sessions_screen import SessionsScreen

if TYPE_CHECKING:
    from everturn.tui.session_items import StartSpot

_DEEPEST = 50  # screens one upon another: sessions may lead to each other in circles


class Browser(App[int]):
    ENABLE_COMMAND_PALETTE = False
    TITLE = "everturn"
    CSS = "Screen { background: ansi_default; color: ansi_default; }"

    def __init__(self, archive: ScreenArchive, write: Write, typed: str = "", session: int | None = None) -> None:
        super().__init__(ansi_color=True)  # the sixteen colours of the terminal, whether it is light or dark
        self.theme = "ansi-dark"
        self.archive, self.write = archive, write
        self._typed, self._session = typed, session
        self.to_start: StartCommand | None = None

    def get_default_screen(self) -> Screen[None]:
        return SessionsScreen(self.archive, self._typed)

    def on_mount(self) -> None:
        """Open the session that was named on the command line."""
        if self._session is not None:
            self.open_session(self._session)

    def open_session(self, session: int, spot: StartSpot | None = None) -> None:
        from everturn.tui.session_screen import SessionScreen

        if len(self.screen_stack) < _DEEPEST:
            self.push_screen(SessionScreen(self.archive, session, spot))

    def open_search(self, typed: str = "") -> None:
        from everturn.tui.search_screen import SearchScreen

        if len(self.screen_stack) < _DEEPEST:
            self.push_screen(SearchScreen(self.archive, typed))

    def show_help(self, of: BrowserScreen) -> None:
        from everturn.tui.text_screen import help_screen

        self.push_screen(help_screen(self.archive, of))

    def leave_with(self, command: StartCommand) -> None:
        self.to_start = command
        self.exit(0)


def run(archive: ScreenArchive, write: Write, typed: str = "", session: int | None = None) -> StartCommand | None:
    """Run the program until the user leaves; return the command to start."""
    browser = Browser(archive, write, typed, session)
    browser.run()
    if browser.return_code:  # textual has printed the traceback
        raise EverturnError("the screen closed because of an internal error; please report the message above")
    return browser.to_start
