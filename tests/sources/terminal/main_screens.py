"""A program on the main screen, with known content: it prints what was said and keeps an input field below it.

Answers grow word by word. Now and then the program clears the screen and prints everything anew, also wrapped to another
width; wipes the screen row by row and draws the last rows again; or takes away a line that it showed for a while. `played`
gives the bytes it sends and what was on its screen.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

from tests.sources.terminal.random_screens import Dice

WORDS = (
    "parser reads every line of the log and keeps what it cannot understand tests were green before this change".split()
)
ROWS, COLUMNS = 16, 72
HEAD = b'Script started on 2025-12-22 14:19:12-06:00 [COLUMNS="%d" LINES="%d"]\n' % (COLUMNS, ROWS)


@dataclass
class MainSession:
    """What a session sent, and what it said."""

    writes: list[bytes] = field(default_factory=list)
    prompts: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)  # commands; their lines went away again

    @property
    def data(self) -> bytes:
        """The recording."""
        return HEAD + b"".join(self.writes)


def played(seed: int, turns: int = 6) -> MainSession:
    """A session of a few turns."""
    program = _MainProgram(Dice(seed))
    for turn in range(1, turns + 1):
        program.turn(turn)
    program.draw()
    return program.session


class _MainProgram:
    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.session = MainSession()
        self.width = COLUMNS
        self.blocks: list[tuple[str, str]] = []  # mark and text
        self.shown: list[str] = []  # rows of the last drawing, input field included
        self.busy, self.typed = "", ""
        self._send("$ agent\r\n")
        self.blocks.append(("", " ▐▛███▜▌   Claude Code v2.1.197"))
        self.draw()

    # what happens -----------------------------------------------------------------------------------------------------
    def turn(self, number: int) -> None:
        """Somebody asks, and the model answers."""
        prompt = f"request {number} {self._words(1 + self.dice.roll(14))}"
        for end in range(0, len(prompt), 7):
            self.typed = prompt[:end]
            self.draw()
        self.typed, self.busy = "", "Tinkering…"
        self.blocks.append(("❯", prompt))
        self.session.prompts.append(prompt)
        self.draw()
        if self.dice.roll(2) == 0:
            self._call(number)
        self._answer(number)
        self.busy = ""
        self.draw()
        self.dice.of((self._nothing, self._nothing, self._clear, self._wipe, self._narrow))()

    def _call(self, number: int) -> None:
        """A command is named while it runs; afterwards only its number is left."""
        command = f"seq {number} {number + self.dice.roll(900)}"
        self.session.calls.append(command)
        self.blocks.append(("●", f"Reading 1 file… (ctrl+o to expand)\n⎿  $ {command}"))
        self.draw()
        self.blocks[-1] = ("", "  Read 1 file (ctrl+o to expand)")
        self.draw()

    def _answer(self, number: int) -> None:
        said = f"answer {number}"
        self.blocks.append(("●", said))
        for word in self._words(4 + self.dice.roll(70)).split():
            said += f" {word}"
            self.blocks[-1] = ("●", said)
            if self.dice.roll(4) == 0:
                self.busy = f"Tinkering… ({self.dice.roll(99)}s)"
                self.draw()
        self.draw()
        self.session.answers.append(said)

    def _nothing(self) -> None:
        """Go on."""

    def _clear(self) -> None:
        """Clear everything and print it anew."""
        self.shown = []
        self._send("\x1b[2J\x1b[3J\x1b[H" + "\r\n".join(self._rows()))
        self.shown = self._rows()

    def _narrow(self) -> None:
        """The same, wrapped to another width."""
        self.width = self.dice.of((40, 55, COLUMNS))
        self._clear()

    def _wipe(self) -> None:
        """Wipe the screen row by row, and draw its last rows again, some more of them than there is room for."""
        self._send("\x1b[H" + "\x1b[2K\x1b[1B" * ROWS + "\x1b[H")
        self._send("\r\n".join(self._rows()[-ROWS - self.dice.roll(6) :]))
        self.shown = self._rows()

    # drawing ----------------------------------------------------------------------------------------------------------
    def draw(self) -> None:
        """Draw again from the first row that changed; what has left the screen can only be printed anew."""
        rows, shown = self._rows(), self.shown
        same = next((n for n, pair in enumerate(zip(rows, shown, strict=False)) if pair[0] != pair[1]), len(shown) - 1)
        up = len(shown) - 1 - max(0, same)
        if up >= ROWS:
            self._clear()
            return
        self._send((f"\x1b[{up}A" if up > 0 else "") + "\r\x1b[J" + "\r\n".join(rows[max(0, same) :]))
        self.shown = rows

    def _rows(self) -> list[str]:
        rows: list[str] = []
        for mark, text in self.blocks:
            first, *rest = (line for part in text.split("\n") for line in self._wrapped(part))
            rows += [f"{mark} {first}" if mark else first, *(f"  {line}" for line in rest), ""]
        rule = "─" * self.width
        return [
            *rows,
            *([f"✻ {self.busy}", ""] if self.busy else []),
            rule,
            f"❯ {self.typed[: self.width - 3]}",
            rule,
            "  ? for shortcuts",
        ]

    def _wrapped(self, text: str) -> list[str]:
        return textwrap.wrap(text, self.width - 3, drop_whitespace=True) if len(text) > self.width - 3 else [text]

    def _words(self, many: int) -> str:
        return " ".join(self.dice.of(WORDS) for _ in range(many))

    def _send(self, text: str) -> None:
        self.session.writes.append(text.encode())
