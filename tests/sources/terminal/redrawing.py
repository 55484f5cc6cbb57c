"""A full-screen program that redraws itself, with known content.

It shows a title, a text that scrolls, an input box and a status line with a spinner. Requests are typed and sent, answers
grow word by word, tools show a placeholder that becomes a box, somebody scrolls back, a menu opens and closes. `played`
gives the bytes it sends and the text that was on its screen at one time or another.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wcwidth import wcswidth

from tests.sources.terminal.random_screens import Dice

WORDS = (
    "parser reads every line of the log and keeps what it cannot understand tests were green before this change so the "
    "cache must be stale 日本語 naïve façade → config.py main() returns None when retry fails twice in a row"
).split()
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


@dataclass(frozen=True)
class Style:
    """How a program draws, and what it is like."""

    marks: str = "sync"  # sync | cursor | none
    drawing: str = "whole"  # whole | changes | scrolling
    columns: int = 100
    rows: int = 32
    title: int = 2  # rows
    sidebar: int = 0  # columns
    turns: int = 8
    menus: bool = True
    scrolls_back: bool = True
    home: bool = True


@dataclass
class Played:
    """What came of it."""

    writes: list[bytes] = field(default_factory=list)  # one for each update of the screen
    truth: list[str] = field(default_factory=list)  # lines of text, blank ones left out

    @property
    def data(self) -> bytes:
        return b"".join(self.writes)


def played(seed: int, style: Style) -> Played:
    """A session of a program of this style."""
    program = _Program(Dice(seed), style)
    program.run()
    return Played(program.writes, [line.rstrip() for line in program.text if line.strip()])


class _Program:
    def __init__(self, dice: Dice, style: Style) -> None:
        self.dice, self.style = dice, style
        self.text: list[str] = []
        self.input, self.status, self.name = "", "enter send", "New session"
        self.back = 0  # lines scrolled back
        self.menu: list[str] = []
        self.ticks = self.tokens = 0
        self.writes: list[bytes] = []
        self.shown: list[str] = [""] * style.rows
        self.offset = 0
        self.width = style.columns - (style.sidebar + 2 if style.sidebar else 0)

    def run(self) -> None:
        self.writes.append(b"$ agent\r\n\x1b[?1049h\x1b[2J" + (b"\x1b[?25l" if self.style.marks != "cursor" else b""))
        if self.style.home:
            self._home()
        for turn in range(1, self.style.turns + 1):
            self._turn(turn)
        self.writes.append(b"\x1b[?1049l\x1b[?25hbye\r\n")

    # what happens ---------------------------------------------------------------------------------------------------
    def _home(self) -> None:
        rows = [""] * self.style.rows
        for number, line in enumerate(
            ("█▀▀█ █▀▀▄", "█▄▄█ █  █", "", "┃ Ask anything", "┃ Build · model", "tip: press ?")
        ):
            rows[self.style.rows // 3 + number] = " " * (self.style.columns // 3) + line
        self._show(rows)

    def _turn(self, turn: int) -> None:
        request = self.dice.of((f"request {turn}: {self._words(6)}", "continue", self._words(30)))
        for end in range(0, len(request) + 1, 5):
            self.input = request[:end][-30:]
            self._draw()
        self.input, self.status = "", "working.."
        for line in [*self._wrapped(request, self.width - 8), "user (02:36 PM)"]:
            self.text.append(_padded(f"  ┃  {line}", self.width - 4) + "┃")
        self.text.append("")
        self._draw()
        for _ in range(1 + self.dice.roll(3)):
            self.dice.of((self._answer, self._answer, self._tool))()
        self.text += [f"     Build model-4.6 ({turn}:36 PM)", ""]
        self.status, self.name = "enter send", self.dice.of((self.name, self.name, f"Fixing {self._words(2)}"))
        self._draw()
        if self.style.scrolls_back and self.dice.roll(3) == 0:
            self._scroll_back()
        if self.style.menus and self.dice.roll(4) == 0:
            self._open_menu()

    def _answer(self) -> None:
        for _ in range(1 + self.dice.roll(3)):
            start = len(self.text)
            spoken = ""
            for word in self._words(10 + self.dice.roll(60)).split():
                spoken += " " + word
                self.text[start:] = [f"     {line}" for line in self._wrapped(spoken, self.width - 10)]
                if self.dice.roll(4) == 0:
                    self._draw()
            self.text.append("")
            self._draw()

    def _tool(self) -> None:
        start = len(self.text)
        self.text += ["  ┃  Preparing edit...".ljust(self.width - 4) + "┃", ""]
        for _ in range(3):
            self._draw()
        name = f"src/{self.dice.of(WORDS[:8])}_{self.dice.roll(900)}.py"
        body = [
            f"{number:>4} {self.dice.of('+- ')} {self._words(4)}"
            for number in range(2 + self.dice.roll(self._height() - 10))
        ]
        self.text[start:] = [_padded(f"  ┃  {line}", self.width - 4) + "┃" for line in (f"Edit {name}", "", *body)]
        self.text.append("")
        self._draw()

    def _scroll_back(self) -> None:
        step = 1 + self.dice.roll(8)
        times = 1 + self.dice.roll(6)
        for _ in range(times):
            self.back = min(self.back + step, max(0, len(self.text) - self._height()))
            self._draw()
        while self.back:
            self.back = max(0, self.back - step)
            self._draw()

    def _open_menu(self) -> None:
        self.menu = [f" {name:<30} " for name in ("Switch model", "Switch session", "Share", "Exit the app")]
        for _ in range(3):
            self._draw()
        self.menu = []
        self._draw()

    # how it is drawn ------------------------------------------------------------------------------------------------
    def _height(self) -> int:
        return self.style.rows - self.style.title - 5

    def _draw(self) -> None:
        self.ticks += 1
        self.tokens += self.dice.roll(50)
        height = self._height()
        first = max(0, len(self.text) - height - self.back)
        rows = [f"  # {self.name}", f"  /share   {self.tokens / 10:.1f}K", ""][: self.style.title]
        rows += (self.text[first : first + height] + [""] * height)[:height]
        rows += ["", "  ┃ ".ljust(self.width - 4) + "┃", _padded(f"  ┃ > {self.input}", self.width - 4) + "┃"]
        rows += ["  ┃ ".ljust(self.width - 4) + "┃"]
        rows += [f"  {SPINNER[self.ticks % len(SPINNER)]} {self.status}".ljust(self.width - 30) + "model · v0.13"]
        for number, entry in enumerate(self.menu):
            row = self.style.rows // 3 + number
            rows[row] = _padded(rows[row][:10], 20) + f"│{entry}│"
        self._show(self._with_sidebar(rows), first)

    def _with_sidebar(self, rows: list[str]) -> list[str]:
        if not self.style.sidebar:
            return rows
        side = [
            "",
            self.name,
            "",
            "Context",
            f"{self.tokens} tokens",
            "",
            "Modified",
            "src/main.py +3",
            "",
            "LSP ready",
        ]
        side += [""] * self.style.rows
        return [_padded(row, self.width) + "  " + side[number] for number, row in enumerate(rows)]

    def _show(self, rows: list[str], first: int = 0) -> None:
        begin, end = {"sync": ("\x1b[?2026h", "\x1b[?2026l"), "cursor": ("\x1b[?25l", "\x1b[?25h")}.get(
            self.style.marks, ("", "")
        )
        if self.style.drawing == "scrolling":
            begin += self._scroll(first - self.offset)
        self.offset = first
        body = "".join(
            f"\x1b[{number + 1};1H\x1b[{self._colour(row)}m{row.rstrip()}\x1b[0m\x1b[K"
            for number, row in enumerate(rows)
            if self.style.drawing == "whole" or row != self.shown[number]
        )
        self.shown = rows
        self.writes.append((begin + body + end).encode())

    def _scroll(self, distance: int) -> str:
        """Let the terminal move what it can."""
        top, bottom = self.style.title, self.style.title + self._height()
        if distance == 0 or abs(distance) >= self._height() or not any(self.shown):
            return ""
        moved = self.shown[top:bottom]
        moved = moved[distance:] + [""] * distance if distance > 0 else [""] * -distance + moved[:distance]
        self.shown = [*self.shown[:top], *moved, *self.shown[bottom:]]
        how = f"\x1b[{distance}S" if distance > 0 else f"\x1b[{-distance}T"
        return f"\x1b[{top + 1};{bottom}r{how}\x1b[r"

    def _colour(self, row: str) -> str:
        return "38;2;92;156;245" if row.startswith("  ┃") else "38;5;15"

    # words ----------------------------------------------------------------------------------------------------------
    def _words(self, count: int) -> str:
        return " ".join(self.dice.of(WORDS) for _ in range(count))

    def _wrapped(self, text: str, width: int) -> list[str]:
        lines = [""]
        for word in text.split():
            if wcswidth(f"{lines[-1]} {word}") > width:
                lines.append("")
            lines[-1] += (" " if lines[-1] else "") + word
        return lines


def _padded(row: str, width: int) -> str:
    return row + " " * max(0, width - wcswidth(row))
