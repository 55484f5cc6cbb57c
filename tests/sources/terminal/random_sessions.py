"""Random sessions of the drawn clients: people ask, models answer, tools run, somebody scrolls back, toasts come and go.

`play` gives the bytes and the truth: every prompt, and every row of the conversation that stood on the screen between two
steps. All prompts and all lines of answers differ, so that a line that is missing is known by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.sources.terminal.drawing import MUTED, ORANGE, TEXT, Row, plain
from tests.sources.terminal.random_screens import Dice
from tests.sources.terminal.screens import Boxes, Panels

TOAST = "Clipboard toast"
_WORDS = "stone river lamp carpet engine violet harbour candle meadow thunder pocket silver anchor window".split()


@dataclass
class PlayedSession:
    """What came of a session."""

    columns: int
    rows: int
    data: bytes = b""
    prompts: list[list[str]] = field(default_factory=list)  # of each conversation
    settled: list[str] = field(default_factory=list)  # rows of the conversation in settled frames, each once


class ToastedBoxes(Boxes):
    """OpenCode 0.x with a toast above the conversation."""

    toast: Sequence[str] = ()

    def frame(self, rows: list[Row], scrolled: tuple[int, int, int]) -> None:
        """One frame, with the toast over it."""
        super().frame(cover(rows, self.toast, self.top, self.columns - 2), scrolled)


class ToastedPanels(Panels):
    """OpenCode 1.x with a toast above the conversation."""

    toast: Sequence[str] = ()

    def frame(self, rows: list[Row], scrolled: tuple[int, int, int]) -> None:
        """One frame, with the toast over it."""
        super().frame(cover(rows, self.toast, self.top + 1, self.columns - 2), scrolled)

    def go_home(self) -> None:
        """The screen without a conversation: the input field stands in the middle of it."""
        inner = self.columns - 30
        field: list[Row] = [
            [(" " * 14, None), ("┃", self.agent), (f"  {line}".ljust(inner), TEXT)]
            for line in ("", "Ask anything...", "", "Build · m Local")
        ]
        edge: Row = [(" " * 14, None), ("╹", self.agent), ("▀" * inner, MUTED)]
        rows: list[Row] = [[] for _ in range(self.height)]
        rows[self.height // 2 : self.height // 2 + 5] = [*field, edge]
        self.painter.frame(rows)


def cover(rows: list[Row], words: Sequence[str], top: int, right: int) -> list[Row]:
    """Rows with a box over their right end, from row `top` on; its right edge is the cell before `right`."""
    if not words:
        return rows
    lines = ["", *words, ""]
    inner = max(map(len, lines)) + 4
    covered = list(rows)
    for number, line in enumerate(lines, top):
        box: Row = [("┃", ORANGE), (f"  {line}".ljust(inner), TEXT), ("┃", ORANGE)]
        covered[number] = [*_cut(rows[number], right - inner - 2), *box]
    return covered


def _cut(row: Row, cells: int) -> Row:
    """The first cells of a row, filled up with blanks."""
    kept: Row = []
    for text, colour in row:
        kept.append((text[:cells], colour))
        cells -= len(text[:cells])
    return [*kept, (" " * cells, None)]


def play_boxes(seed: int, steps: int = 14) -> PlayedSession:
    """A session of boxes."""
    return _Script(ToastedBoxes(*Dice(seed).of(((80, 24), (100, 30)))), seed).run(steps)


def play_panels(seed: int, steps: int = 14) -> PlayedSession:
    """A session of panels."""
    return _Script(ToastedPanels(*Dice(seed).of(((80, 26), (100, 32)))), seed).run(steps)


class _Script:
    def __init__(self, client: ToastedBoxes | ToastedPanels, seed: int) -> None:
        self.client, self.dice = client, Dice(seed * 7919)
        self.number = 0
        self.played = PlayedSession(client.columns, client.height, prompts=[[]])

    def run(self, steps: int) -> PlayedSession:
        """Take some steps and close the client."""
        self._turn()
        for _ in range(steps):
            self.dice.of((self._turn, self._turn, self._tall_answer, self._tool, self._scroll_back, self._toast))()
            self._settle()
        self._new_session()
        self._turn()
        self.client.rename(f"Session {self._next()}")
        self._turn()
        self._settle()
        self.played.data = self.client.close()
        return self.played

    def _settle(self) -> None:
        """Draw once more and note the rows of the conversation that stand there."""
        client = self.client
        client.toast = ()
        client.draw()
        for row in client.painter.grid[client.top : client.height - client.bottom]:
            if (text := plain(row).strip(" ┃")) and text not in self.played.settled:
                self.played.settled.append(text)

    # the steps --------------------------------------------------------------------------------------------------------
    def _turn(self) -> None:
        prompt = f"Request {self._next()}: {self._words(3 + self.dice.roll(20))}"
        self.client.ask(prompt)
        self.played.prompts[-1].append(prompt)
        self._answer(1 + self.dice.roll(3))

    def _tall_answer(self) -> None:
        """An answer higher than the screen."""
        prompt = f"Long request {self._next()}"
        self.client.ask(prompt)
        self.played.prompts[-1].append(prompt)
        self._answer(18 + self.dice.roll(14))

    def _answer(self, lines: int) -> None:
        number = self._next()
        self.client.answer("\n".join(f"Line {number}.{n} tells of {self._words(4)}." for n in range(lines)))
        if isinstance(self.client, Panels):
            self.client.end(f"{number}.1s")

    def _tool(self) -> None:
        number = self._next()
        if isinstance(self.client, Panels):
            self.client.inline(f"→ Read src/file{number}.py")
            self._answer(1)
        else:
            self.client.call(f"Read src/file{number}.py", [f"value{number} = {self._words(2)}"])

    def _scroll_back(self) -> None:
        """Somebody looks further up and comes back; halfway is a settled frame too."""
        self.client.scroll(-3 * (2 + self.dice.roll(12)))
        self._settle()
        self.client.scroll(1000)

    def _toast(self) -> None:
        """A toast stands over the conversation while it goes on."""
        self.client.toast = [f"{TOAST} {self._next()}", "copied"][: 1 + self.dice.roll(2)]
        self.client.draw()
        self._turn()
        self.client.toast = ()
        self.client.draw()

    def _new_session(self) -> None:
        self.client.rename(f"Session {self._next()}")
        self.client.new()
        if isinstance(self.client, ToastedPanels):
            self.client.go_home()
        self.played.prompts.append([])

    def _next(self) -> int:
        self.number += 1
        return self.number

    def _words(self, many: int) -> str:
        return " ".join(self.dice.of(_WORDS) for _ in range(many))
