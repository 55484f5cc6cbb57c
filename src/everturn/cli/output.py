"""The output of a command: data to stdout, messages to stderr.

Promises: no control character of an archive reaches the terminal; secrets are masked unless `--reveal` is given; a pipe gets
full lines, a terminal lines cut to its width. Text goes through `Output.text` before it is cut, as half a secret would not
be recognized.

A pager for long output on a terminal: `$PAGER`, else `less`. What fits on one screen is printed as it is.

Messages to stderr are held back while the pager has the screen, and printed when it ends.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

from everturn.text.printable import count_cells, cut_cells, printable, to_json, wrap_cells

if TYPE_CHECKING:
    import subprocess

    from everturn.secrets.redaction import Cleaner
    from everturn.sessions.lookup import SessionListing
    from everturn.store.contract import Store


#: Cells that a text column keeps on a narrow terminal, and on a very narrow one.
_READABLE, _LEAST = 16, 8


class Output:
    """The two streams of one command."""

    def __init__(
        self,
        json: bool = False,
        reveal: bool = False,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        env: Mapping[str, str] = os.environ,
    ) -> None:
        self.json = json
        self.reveal = reveal
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr
        self.env = env
        self.archive: Store | None = None  # its key makes equal secrets recognizable
        self._line = ""  # the progress line on the screen
        self._is_paged = False
        self._held: list[str] = []  # messages, while a pager has the screen

    @cached_property
    def clean(self) -> Callable[[str], str]:
        """Masks secrets in a text, for jobs that cut their texts; with --reveal it changes nothing."""
        return str if self.reveal else self.cleaner

    @cached_property
    def clean_line(self) -> Callable[[bytes], bytes] | None:
        """Masks secrets in a line of JSON; None with --reveal."""
        return None if self.reveal else self.cleaner.line

    @cached_property
    def cleaner(self) -> Cleaner:
        """Masks secrets, with the key of the archive."""
        if self.archive is None:
            from everturn.secrets.redaction import Cleaner

            return Cleaner()
        from everturn.sessions.secrets import archive_cleaner

        return archive_cleaner(self.archive)

    # data -----------------------------------------------------------------------------------------------------------
    def emit(self, text: str = "") -> None:
        """Print data that was already cleaned, with a line end."""
        self.clear_progress()
        self.stdout.write(text + "\n")

    def emit_bytes(self, data: bytes) -> None:
        self.stdout.flush()
        self.stdout.buffer.write(data)

    def emit_json(self, name: str, items: Iterable[Any], /, next: Any = None, **more: Any) -> None:
        """Print `{"schema": "everturn/NAME@1", …more, "items": […], "next": …}` in one line."""
        schema = f"everturn/{name}@1"

        def clean(text: str) -> str:
            """Mask secrets. The rules take milliseconds to load, and are not needed for a name of ours."""
            return text if text == schema else self.cleaner(text)

        document = {"schema": schema, **more, "items": list(items), "next": next or None}
        self.emit(to_json(document, None if self.reveal else clean))

    def emit_result(self, name: str, line: str, /, **facts: Any) -> None:
        """Print the result of a command in one line; with --json its facts."""
        if self.json:
            self.emit_json(name, [], **facts)
        else:
            self.emit(line)

    def emit_rows(
        self,
        name: str,
        items: Iterable[Any],
        columns: Sequence[str],
        rows: Iterable[Sequence[str]],
        /,
        right: Iterable[int] = (),
        **more: Any,
    ) -> None:
        """Print a table; with --json the items it was made from."""
        if self.json:
            self.emit_json(name, items, **more)
        else:
            self.table(columns, rows, right)

    def report(self, name: str, done: str, /, **facts: Any) -> None:
        """Say what a command has done, which contains no line end; with --json print the facts, too."""
        if self.json:
            self.emit_json(name, [], **facts)
        self.say(self.text(done))

    def text(self, value: str, keep: str = "") -> str:
        """Return text of the archive with secrets masked and control characters made visible."""
        return printable(self.clean(value), keep=keep)

    def emit_wrapped(self, text: str, margin: str = "", first: str | None = None) -> None:
        """Print one line of cleaned text behind a margin; a terminal gets it wrapped at its width."""
        begin = margin if first is None else first
        if not self.fancy:
            self.emit(f"{begin}{text}".rstrip())
            return
        for number, line in enumerate(wrap_cells(text, max(20, self.width - len(margin)))):
            self.emit(f"{margin if number else begin}{line}".rstrip())

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> None:
        """Print aligned columns; `right` are the numbers of those to align right. The cells are cleaned here."""
        cells = [[self.text(cell) for cell in row] for row in rows]
        for number, line in enumerate(_align_rows(columns, cells, set(right), self.width if self.fancy else 0)):
            strong = number == 0 and self.fancy and not self.env.get("NO_COLOR")
            self.emit(f"\x1b[1m{line}\x1b[0m" if strong else line)

    # messages -------------------------------------------------------------------------------------------------------
    def say(self, text: str = "") -> None:
        """Print a message to stderr; it is cleaned here."""
        if self._is_paged:
            self._held.append(text)
            return
        self.clear_progress()
        shown = self.text(text, "\n\t")
        if self.lively:
            shown = "\n".join(part for line in shown.split("\n") for part in wrap_cells(line, self.width))
        self.stderr.write(shown + "\n")
        self.stderr.flush()

    def warn(self, text: str) -> None:
        self.say(f"everturn: {text}")

    def progress(self, label: str, total: int = 0) -> ProgressLine:
        """`with out.progress("reading", total) as step: step(done, "note")`; silent unless stderr is a terminal."""
        return ProgressLine(self, label, total)

    # a pager --------------------------------------------------------------------------------------------------------
    def begin_paging(self, screen: TextIO) -> None:
        """Send data to a pager; messages wait until it ends."""
        self.stdout.flush()
        self.stdout, self._is_paged = screen, True

    def end_paging(self, stdout: TextIO) -> None:
        self.stdout, self._is_paged = stdout, False
        held, self._held = self._held, []
        for text in held:
            self.say(text)

    # the terminal ---------------------------------------------------------------------------------------------------
    @property
    def fancy(self) -> bool:
        """Whether stdout may get colours and cut lines."""
        return self.env.get("FORCE_COLOR", "0") not in ("", "0") or (
            self.on_terminal and self.env.get("TERM") != "dumb"
        )

    @property
    def on_terminal(self) -> bool:
        """Whether a person sees stdout, by itself or in a pager."""
        return self._is_paged or _is_terminal(self.stdout)

    @property
    def lively(self) -> bool:
        """Whether stderr may get a progress line."""
        return _is_terminal(self.stderr) and self.env.get("TERM") != "dumb"

    @property
    def width(self) -> int:
        """The width of the terminal; `COLUMNS` wins."""
        columns = self.env.get("COLUMNS", "")
        if columns.isdigit() and int(columns) > 0:
            return int(columns)
        for stream in (self.stdout, self.stderr, sys.__stdout__):
            if stream is not None and _is_terminal(stream):
                return os.get_terminal_size(stream.fileno()).columns or 80
        return 80

    def show_progress(self, line: str) -> None:
        self._line = line
        self.stderr.write(f"\r\x1b[K{line}")
        self.stderr.flush()

    def clear_progress(self) -> None:
        """Remove the progress line before anything else is written."""
        if self._line:
            self._line = ""
            self.stderr.write("\r\x1b[K")
            self.stderr.flush()


class ProgressLine:
    """A progress line on stderr, redrawn at most ten times a second."""

    def __init__(self, out: Output, label: str, total: int = 0) -> None:
        self.out = out
        self.label = label
        self.total = total
        self._drawn = 0.0

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.out.clear_progress()

    def __call__(self, done: int, note: str = "", total: int | None = None) -> None:
        """Show that `done` of the total are done."""
        if total is not None:
            self.total = total
        moment = time.monotonic()
        if not self.out.lively or (moment - self._drawn < 0.1 and done != self.total):
            return
        self._drawn = moment

        share = f"{done}/{self.total}" if self.total else str(done)
        line = f"{self.label} {share}" + (f"  {self.out.text(note)}" if note else "")
        self.out.show_progress(cut_cells(line, self.out.width - 1))


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _align_rows(columns: Sequence[str], rows: list[list[str]], right: set[int], width: int) -> Iterable[str]:
    """Yield rows with two blanks between columns and no trailing blanks, cut to `width` cells (0: not cut).

    The last column is narrowed first, then the widest text columns; never numbers or the first column: a cut id is useless.
    """
    head = [name.upper() for name in columns]
    widths = [max(map(count_cells, column)) for column in zip(head, *rows, strict=True)]
    if width:
        words = [number for number in range(1, len(widths)) if number not in right]
        _narrow_columns(widths, words, width - 2 * (len(widths) - 1))
    for row in [head, *rows]:
        padded = []
        for number, (cell, wide) in enumerate(zip(row, widths, strict=True)):
            shown = cut_cells(cell, wide) if count_cells(cell) > wide else cell
            gap = " " * (wide - count_cells(shown))
            padded.append(gap + shown if number in right else shown + gap)
        yield "  ".join(padded).rstrip()


def _narrow_columns(widths: list[int], words: list[int], room: int) -> None:
    """Narrow the text columns until all fit: the last one while it stays readable, then the widest."""
    for least in (_READABLE, _LEAST):
        while sum(widths) > room and words:
            last = words[-1]
            widest = last if widths[last] > least else max(words, key=lambda number: widths[number])
            if widths[widest] <= least:
                break
            widths[widest] -= 1


_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36", "match": "1;33"}


class Pen:
    """Colours on a terminal, unless NO_COLOR is set."""

    def __init__(self, out: Output) -> None:
        self.on = out.fancy and not out.env.get("NO_COLOR")

    def __call__(self, style: str, text: str) -> str:
        """Return a cleaned text in a style."""
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if self.on and text else text


def in_one_line(out: Output, text: str, width: int) -> str:
    """Return the beginning of the text on one line of at most `width` cells."""
    return cut_cells(" ".join(out.text(text, "\n\t").split()), width)


def print_session_rows(out: Output, items: Sequence[SessionListing], now: int) -> None:
    """Print sessions one per line: a terminal gets the columns that fit, a pipe all of them."""
    from everturn.sessions.lookup import lay_out_rows, session_row
    from everturn.sources.contract import all_sources

    rows = [session_row(item, all_sources(), now, out.clean) for item in items]
    layout = lay_out_rows(rows, out.width if out.fancy else 0)
    out.emit(Pen(out)("bold", "  ".join(layout.headings()).rstrip()))
    for row in rows:
        out.emit("  ".join(layout.cells(row)).rstrip())


def first_lines(out: Output, text: str, most: int) -> tuple[Iterator[str], int]:
    """Return the first `most` lines of the text (0: all), and how many follow."""
    shown = out.text(text, "\n\t").strip("\n")
    beyond = shown.count("\n") + 1 - most
    if not most:
        return _iterate_lines(shown, shown.count("\n") + 1), 0
    if beyond <= 1:  # a note about one more line would be as long as the line
        most, beyond = most + 1, 0
    return (
        line if len(line) <= _LONG_LINE else f"{line[:_LONG_LINE]}…" for line in _iterate_lines(shown, most)
    ), beyond


_LONG_LINE = 2000


def _iterate_lines(text: str, most: int) -> Iterator[str]:
    """Yield lines one by one: a list of the lines of a long output would take many times its size."""
    start = 0
    for _ in range(most):
        end = text.find("\n", start)
        yield text[start:] if end < 0 else text[start:end]
        if end < 0:
            return
        start = end + 1


# --- A pager for long output on a terminal: `$PAGER`, else `less`. What fits on one screen is printed as it is ---
_NO_PAGERS = ("", "cat")
_LESS = "-RFX"  # colours, leave at once if it fits on the screen, keep what was shown


@contextmanager
def open_pager(out: Output) -> Iterator[None]:
    """Send what a command prints through the pager, on a terminal and without --json."""
    program = _pager(out)
    if program is None:
        yield
        return
    import subprocess

    env = {**out.env, "LESS": out.env.get("LESS", _LESS)}
    process = subprocess.Popen(program, stdin=subprocess.PIPE, env=env)
    assert process.stdin is not None
    shown, screen = out.stdout, TextIOWrapper(process.stdin, encoding="utf-8", errors="replace")
    out.begin_paging(screen)
    try:
        with suppress(BrokenPipeError):  # the reader has seen enough
            yield
            screen.flush()
    finally:
        with suppress(BrokenPipeError):
            screen.close()
        _wait(process)
        out.end_paging(shown)


def _pager(out: Output) -> list[str] | None:
    if out.json or not out.on_terminal:
        return None
    import shlex
    from shutil import which

    words = shlex.split(out.env.get("EVERTURN_PAGER", out.env.get("PAGER", "less")))
    if not words or words[0] in _NO_PAGERS or os.name == "nt":
        return None
    program = which(words[0])
    return [program, *words[1:]] if program else None


def _wait(process: subprocess.Popen[bytes]) -> None:
    while True:
        try:
            process.wait()
            return
        except KeyboardInterrupt:  # Ctrl-C belongs to the pager
            continue
