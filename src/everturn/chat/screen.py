"""Input and output of a chat, on a terminal or through pipes.

Answers and the output of commands go to `out`, messages about the program to `err`. On a terminal answers are styled as
they stream: a line is shown as it arrives and set again in its style when it is complete, as long as the number of rows
it took is certain. No control character of a model reaches the terminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from everturn.llm.protocol import ChatPart, Delta
from everturn.text.printable import count_cells, one_line, printable

_BOLD, _DIM, _CYAN, _YELLOW, _OFF = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[33m", "\x1b[0m"
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"#{1,6} +(.*)")
_BULLET = re.compile(r"(\s*)[-*+] +(.*)")
_QUOTE = re.compile(r"\s{0,3}> ?(.*)")
_INLINE = re.compile(r"`([^`\n]+)`|\*\*([^*\n]+)\*\*")
_MOST_CALL_TEXT = 160  # characters of a call that are shown


class InputEnded(Exception):
    """The input has ended."""


@dataclass
class ChatScreen:
    """The screen of one person. `read` returns the next line for a prompt and raises EOFError at the end."""

    out: TextIO
    err: TextIO
    read: Callable[[str], str]
    is_terminal: bool = False
    is_coloured: bool = False
    size: Callable[[], tuple[int, int]] = lambda: (80, 24)  # columns and rows, which may change
    _line: str = ""  # the current line of the answer
    _name: str = ""  # the name of the answering agent, until it is shown
    _head: int = 0  # length of the name within the line
    _fenced: bool = False
    _speaks: bool = False
    _asked: bool = False

    @property
    def width(self) -> int:
        return self.size()[0]

    # --- input ---
    def prompt(self, label: str = "You: ") -> str:
        """Read one line or several. Raises InputEnded, KeyboardInterrupt."""
        self.end_answer()
        if self._asked and self.is_terminal:
            self.out.write("\n")  # a blank line between turns
        self._asked = True
        lines = [self._read(label)]
        while lines[-1].endswith("\\") and not lines[-1].endswith("\\\\"):
            lines[-1] = lines[-1][:-1]
            try:
                lines.append(self._read("...  "))
            except InputEnded:
                break
        return "\n".join(lines)

    def agrees(self, question: str, default: bool = False) -> bool:
        """Ask yes or no. Without a terminal the answer is the default."""
        return self.choose(f"{question} (y/n) ", default="y" if default else "n").lower() in ("y", "yes")

    def choose(self, question: str, default: str = "") -> str:
        """Ask for a short answer. The default without a terminal, at the end of the input and on interrupt."""
        self.end_answer()
        if not self.is_terminal:
            self.say(f"{question}{default}")
            return default
        try:
            return self._read(question).strip() or default
        except (InputEnded, KeyboardInterrupt):
            self.err.write("\n")
            return default

    def _read(self, label: str) -> str:
        self.out.flush()
        self.err.flush()
        try:
            return self.read(label if self.is_terminal else "")
        except EOFError:
            raise InputEnded from None

    # --- output ---
    def say(self, text: str, end: str = "\n") -> None:
        """Print a message about the program."""
        self.end_answer()
        self.err.write(printable(text) + end)
        self.err.flush()

    def warn(self, text: str) -> None:
        """Print a warning."""
        self.end_answer()
        self.err.write(self._style_text(_YELLOW, f"⚠️ {printable(text)}") + "\n")
        self.err.flush()

    def show(self, text: str) -> None:
        """Print the output of a command."""
        self.end_answer()
        self.out.write(printable(text) + "\n")
        self.out.flush()

    # --- a streamed answer ---
    def begin_answer(self, name: str) -> None:
        """Begin an answer. The name is shown with its first text."""
        self.end_answer()
        self._fenced, self._name = False, f"{printable(name, keep='')}: "

    def delta(self, delta: Delta) -> None:
        """Print a part of the answer. Thinking is not shown."""
        if delta.kind == "text" and delta.text:
            if not self._speaks:
                self.out.write(self._style_text(_BOLD, self._name))
                self._line, self._head, self._name, self._speaks = self._name, len(self._name), "", True
            *whole, rest = printable(delta.text).split("\n")
            for line in whole:
                self._add(line)
                self._finish_line()
            self._add(rest)
            self.out.flush()

    def call(self, event: str, about: Any) -> None:
        if event == "started" and isinstance(about, ChatPart):
            self.end_answer()
            self.err.write(self._style_text(_DIM, f"  → {describe_call(about.name, about.arguments)}") + "\n")
            self.err.flush()
        elif event == "finished" and about.is_error:
            self.say(f"  ✗ {about.part.name}: {one_line(about.text, _MOST_CALL_TEXT)}")

    def end_answer(self) -> None:
        if self._speaks:
            self._finish_line()
            self.out.flush()
        self._speaks, self._line = False, ""

    def _add(self, text: str) -> None:
        self._line += text
        self.out.write(text)

    def _finish_line(self) -> None:
        """Set a complete line again in its style, unless it looks the same or its beginning is uncertain."""
        head, words = self._line[: self._head], self._line[self._head :]
        styled = self._markdown(words) if self.is_coloured and words else words
        rows = _count_rows(self._line, *self.size()) if styled != words else 0
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        self.out.write(f"{up}\r\x1b[J{self._style_text(_BOLD, head) if head else ''}{styled}\n" if rows else "\n")
        self._line, self._head = "", 0

    # --- styles ---
    def _markdown(self, line: str) -> str:
        if _FENCE.match(line):
            self._fenced = not self._fenced
            return f"{_DIM}{line}{_OFF}"
        if self._fenced:
            return f"{_CYAN}{line}{_OFF}"
        if heading := _HEADING.fullmatch(line):
            return f"{_BOLD}{heading[1]}{_OFF}"
        if bullet := _BULLET.fullmatch(line):
            return f"{bullet[1]}• {_style_inline(bullet[2])}"
        if quote := _QUOTE.fullmatch(line):
            return f"{_DIM}│ {quote[1]}{_OFF}"
        return _style_inline(line)

    def _style_text(self, style: str, text: str) -> str:
        return f"{style}{text}{_OFF}" if self.is_coloured else text


def describe_call(name: str, arguments: Any) -> str:
    """Describe a call in a few words: its name and its main argument."""
    given = arguments if isinstance(arguments, dict) else {}
    about = next((given[key] for key in ("command", "path", "pattern", "query", "action") if given.get(key)), "")
    return f"{name} {one_line(str(about), _MOST_CALL_TEXT)}".strip()


def describe_call_fully(name: str, arguments: Any, most: int = 0) -> str:
    """Describe a call for approval: its name and each argument, at most `most` lines of each (0: all)."""
    given = arguments if isinstance(arguments, dict) else {"": arguments}
    text = [f"? {name}"]
    for key, value in given.items():
        first, *more = str(value).rstrip("\n").split("\n")
        if not more:
            text.append(f"  {key}: {first}")
            continue
        lines = [first, *more]
        shown = lines[:most] if most and len(lines) > most + 1 else lines
        text += [f"  {key}:", *(f"    {line}" for line in shown)]
        text += [f"    … {len(lines) - len(shown)} more lines"] if len(shown) < len(lines) else []
    return "\n".join(text)


def _count_rows(line: str, width: int, height: int) -> int:
    """Return the rows that a line takes; 0 if that is uncertain or it began above the screen."""
    if "\t" in line or any(_has_doubtful_width(char) for char in line):
        return 1 if count_cells(line.expandtabs()) + 8 < width else 0
    row, column = 1, 0
    for char in line:
        column += (wide := count_cells(char))
        if column > width:
            row, column = row + 1, wide
    return row if row < height else 0


def _has_doubtful_width(char: str) -> bool:
    """Whether terminals disagree about the width: emoji, combining marks, joiners."""
    return not (char < "\u0300" or "\u2010" <= char < "\u2600" or "\u3000" <= char < "\ua000")


def _style_inline(text: str) -> str:
    return _INLINE.sub(lambda one: f"{_CYAN}{one[1]}{_OFF}" if one[1] else f"{_BOLD}{one[2]}{_OFF}", text)
