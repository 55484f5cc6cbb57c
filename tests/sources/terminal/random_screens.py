"""Seeded bytes that use every control function a terminal has, in any order.

The dice are our own: the same seed gives the same bytes on every version of Python, so that the screens tmux showed can
be kept in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from everturn.sources.terminal.screen import TerminalScreen

T = TypeVar("T")

SIZES = ((20, 6), (32, 8), (40, 10), (40, 12), (61, 9), (80, 24))

WORDS = "the agent reads main.py and says done; next: fix it, then (re)run [all] tests_of_it a bc x".split()
WIDE = "会話テスト한국어世界漢字"
NARROW = "é ü ß ñ → ← ▣ ● ┃ ━ ─ █ ▀ … λ Ω я".split()
EMOJI = ("🚀", "👍", "🙂", "🎉")
MARKED = ("e\u0301", "a\u0308\u0301", "世\u0301", "n\u0303", "❤\ufe0f", "1\ufe0f\u20e3")


class Dice:
    """A small generator of numbers (splitmix64)."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def roll(self, sides: int) -> int:
        """0 to sides - 1."""
        mask = (1 << 64) - 1
        self._state = (self._state + 0x9E3779B97F4A7C15) & mask
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        return ((mixed ^ (mixed >> 31)) >> 11) % sides

    def of(self, choices: Sequence[T]) -> T:
        """One of them."""
        return choices[self.roll(len(choices))]


def size_of(seed: int) -> tuple[int, int]:
    """Columns and rows of a seed's screen."""
    return SIZES[seed % len(SIZES)]


def bytes_of(seed: int) -> bytes:
    """What is sent to a seed's screen."""
    dice = Dice(seed)
    columns, rows = size_of(seed)
    kinds = [make for make, weight in KINDS for _ in range(weight)]
    pieces = [dice.of(kinds)(dice, columns, rows) for _ in range(40 + dice.roll(160))]
    return "".join(pieces).encode()


def _words(dice: Dice, columns: int, rows: int) -> str:
    return " ".join(dice.of(WORDS) for _ in range(1 + dice.roll(6)))


def _long_line(dice: Dice, columns: int, rows: int) -> str:
    return "".join(chr(33 + dice.roll(90)) for _ in range(columns + dice.roll(2 * columns)))


def _foreign(dice: Dice, columns: int, rows: int) -> str:
    pool = (*WIDE, *NARROW, *EMOJI, *MARKED, *WORDS)
    return "".join(dice.of(pool) for _ in range(1 + dice.roll(12)))


def _ruler(dice: Dice, columns: int, rows: int) -> str:
    return dice.of("─━═█▀") * (1 + dice.roll(columns))


def _line_end(dice: Dice, columns: int, rows: int) -> str:
    return dice.of(("\r\n", "\r\n", "\n", "\r", "\x0b", "\x0c", "\x1bD", "\x1bE", "\x1bM"))


def _place(dice: Dice, columns: int, rows: int) -> str:
    row, column = 1 + dice.roll(rows + 1), 1 + dice.roll(columns + 2)
    return dice.of((f"{row};{column}H", f"{row};{column}f", f"{row}d", f"{column}G", f"{column}`", "H", f"{row}H"))


def _step(dice: Dice, columns: int, rows: int) -> str:
    return dice.of(("", "1", str(dice.roll(rows)), str(dice.roll(columns)))) + dice.of("ABCDEF")


def _erase(dice: Dice, columns: int, rows: int) -> str:
    """Rarely the whole screen: there would be little left to compare."""
    if dice.roll(40) == 0:
        return "2J"
    row, column = 1 + dice.roll(rows), 1 + dice.roll(columns)
    some = f"{dice.roll(columns)}X"
    return dice.of(
        ("K", "0K", "1K", "2K", "X", some, "3X", f"{rows};{column}H\x1b[J", f"{1 + row // 4};{column}H\x1b[1J")
    )


def _insert(dice: Dice, columns: int, rows: int) -> str:
    return dice.of(("", str(1 + dice.roll(6)), str(1 + dice.roll(rows)))) + dice.of("PST")


def _insert_cells(dice: Dice, columns: int, rows: int) -> str:
    """Not more than half of what follows: tmux leaves old cells standing in a wider gap."""
    column = 1 + dice.roll(columns - 2)
    return f"\x1b[{column}G\x1b[{1 + dice.roll((columns - column) // 2)}@"


def _insert_lines(dice: Dice, columns: int, rows: int) -> str:
    """Inside a scroll region: outside, tmux does what no other terminal does."""
    first = 1 + dice.roll(rows - 1)
    last = first + 1 + dice.roll(rows - first)
    row = first + dice.roll(last - first + 1)
    region = dice.of(("\x1b[r", f"\x1b[{first};{last}r"))
    return f"\x1b[?6l{region}\x1b[{row};{1 + dice.roll(columns)}H\x1b[{1 + dice.roll(rows)}{dice.of('LM')}"


def _region(dice: Dice, columns: int, rows: int) -> str:
    first = 1 + dice.roll(rows - 1)
    return dice.of(("r", f"{first};{first + 1 + dice.roll(rows - first)}r", f"{first}r"))


def _colour(dice: Dice, columns: int, rows: int) -> str:
    level, red, green, blue = dice.roll(8), dice.roll(256), dice.roll(256), dice.roll(256)
    return (
        dice.of(
            (
                *("", "0", "39", "1", "7", "27", "49", f"3{level}", f"9{level}", f"4{level}", f"1;3{level}"),
                *(f"38;5;{red}", f"48;5;{red}", f"38;2;{red};{green};{blue}", f"48;2;{red};{green};{blue};3{level}"),
                *(f"38:5:{red}", f"38:2::{red}:{green}:{blue}", f"38:2:{red}:{green}:{blue}", f"0;38;5;{red};1"),
            )
        )
        + "m"
    )


def _mode(dice: Dice, columns: int, rows: int) -> str:
    return dice.of(("4h", "4l", "4l", "?7l", "?7h", "?7h", "?6h", "?6l", "?25l", "?25h", "?2004h", "?1006l"))


def _other_screen(dice: Dice, columns: int, rows: int) -> str:
    return dice.of(("?1049h", "?1049l", "?1047h", "?1047l", "?47h", "?47l", "?1049h", "?1049l"))


def _tab(dice: Dice, columns: int, rows: int) -> str:
    return dice.of(("\t", "\t", "\t\t", "\x1bH", "\x1b[g", "\x1b[3g", "\x1b[Z", "\x1b[2Z"))


def _charset(dice: Dice, columns: int, rows: int) -> str:
    on = dice.of(("\x1b(0", "\x1b)0\x0e"))
    return on + dice.of(("lqqqk", "x  x", "mqqqj", "tqnqu", "~o~", "aaa")) + "\x0f\x1b(B"


def _save(dice: Dice, columns: int, rows: int) -> str:
    return dice.of(("\x1b7", "\x1b8", "\x1b[s", "\x1b[u"))


def _repeat(dice: Dice, columns: int, rows: int) -> str:
    return dice.of(" -=x#") + f"\x1b[{1 + dice.roll(columns)}b"


def _swallowed(dice: Dice, columns: int, rows: int) -> str:
    return dice.of(
        (
            *(
                "\x1b]0;a title\x07",
                "\x1b]2;title\x1b\\",
                "\x1b]11;?\x07",
                "\x1b]8;;http://x.y\x07",
                "\x1b]52;c;c2VjcmV0\x07",
            ),
            *("\x1bP+q4d73\x1b\\", "\x1bP1$r0m\x1b\\", "\x1b_Gi=1;AAAA\x1b\\", "\x1b^pm\x1b\\", "\x1bXsos\x1b\\"),
            *("\x1b[c", "\x1b[>0q", "\x1b[?u", "\x1b[14t", "\x1b=", "\x1b>", "\x1b[>4;1m", "\x1b[2 q", "\x1b[?2026$p"),
        )
    )


def _oddity(dice: Dice, columns: int, rows: int) -> str:
    return dice.of(
        ("x\b", "xy\b\b", "\x1b[1\r2C", "\x1b[3\x18A", "\x1b[31\x1b[2C", "\x07", "\x7f", "\x1b[12\nD", "\x1b#8", "\x00")
    )


def _reset(dice: Dice, columns: int, rows: int) -> str:
    if dice.roll(12) == 0:
        return dice.of(("\x1b[?47l\x1bc\x1b7", "\x1b[?3h"))
    return dice.of(("\x1b[4l\x1b[?7h\x1b[?6l\x1b[r", "\x1b[m"))


def _csi(make: Callable[[Dice, int, int], str]) -> Callable[[Dice, int, int], str]:
    return lambda dice, columns, rows: "\x1b[" + make(dice, columns, rows)


KINDS: tuple[tuple[Callable[[Dice, int, int], str], int], ...] = (
    *(
        (_words, 16),
        (_foreign, 12),
        (_long_line, 3),
        (_ruler, 3),
        (_line_end, 14),
        (_csi(_place), 14),
        (_csi(_step), 8),
    ),
    *((_csi(_erase), 6), (_csi(_insert), 4), (_csi(_region), 3), (_csi(_colour), 12), (_csi(_mode), 4)),
    *((_csi(_other_screen), 1), (_tab, 4), (_charset, 3), (_save, 3), (_repeat, 4), (_swallowed, 3), (_oddity, 4)),
    *((_reset, 2), (_insert_lines, 3), (_insert_cells, 3)),
)


def colours_of(screen: TerminalScreen) -> list[list[int | None]]:
    """The foreground colour of every cell of a screen."""
    return [[screen.palette.colour(ink) for ink in row] for row in screen.inks]
