"""A terminal: bytes in, screens out. Text and foreground colours, the alternate screen, scrollback by a hook.

`feed` takes any bytes in pieces of any size and never raises; the screen after the last piece does not depend on how
the bytes were split. `on_mark` is called at the moments that matter for reading a recording, always while the screen
still (or already) shows what a person would have seen:

    enter, leave    before the alternate screen comes and goes
    clear           before the whole screen is cleared
    forget          the program clears the scrollback
    jump            before the cursor jumps up by more than two rows: a repaint begins
    show            the cursor is shown again after it was hidden
    sync            a synchronized update ends

Clipboard contents and all other strings sent to the terminal are swallowed; only titles come out, by `on_title`.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from everturn.sources.terminal.charsets import LINE_DRAWING
from everturn.sources.terminal.controls import CONTROL_CHARACTERS, CSI, ESCAPES, action_of
from everturn.sources.terminal.cursor import Cursor
from everturn.sources.terminal.grid import Scrolled
from everturn.sources.terminal.sequences import (
    CHARSET,
    COMMAND,
    CONTROLS,
    CSI_AND_TEXT,
    ESCAPE,
    TEXT,
    TOKEN,
    Swallowing,
    irregular,
    whole_characters,
)
