"""Which sequence is which control function.

`action_of` looks a sequence up with its numbers already made out, so that one that comes a second time costs a
dictionary look-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from everturn.sources.terminal.colours import UNCHANGED, foreground
from everturn.sources.terminal.controls import Controlled

#: What a sequence does, and with which arguments; None when it does nothing that shows.
Action = tuple[Callable[..., None] | None, tuple[Any, ...]]

NOTHING: Final[Action] = (None, ())

#: Control characters by their code.
CHARACTERS: Final[dict[int, Callable[[Any], None]]] = {
    0x08: Controlled.backspace,
    0x09: Controlled.tab,
    0x0A: Controlled.line_feed,
    0x0B: Controlled.line_feed,
    0x0C: Controlled.line_feed,
    0x0D: Controlled.carriage_return,
    0x0E: lambda screen: screen.shift(True),
    0x0F: lambda screen: screen.shift(False),
}

#: Escapes by what follows the escape character.
ESCAPES: Final[dict[bytes, Callable[[Any], None]]] = {
    b"7": Controlled.save_cursor,
    b"8": Controlled.restore_cursor,
    b"D": Controlled.line_feed,
    b"E": Controlled.new_line,
    b"H": Controlled.set_tab,
    b"M": Controlled.reverse_index,
    b"c": Controlled.reset,
    b"#8": Controlled.alignment_test,
}

#: Functions by final byte, with the value of each number that is missing; numbers below it count as it.
_FUNCTIONS: dict[bytes, tuple[Callable[..., None], tuple[int, ...]]] = {
    b"@": (Controlled.insert_cells, (1,)),
    b"A": (Controlled.up, (1,)),
    b"B": (Controlled.down, (1,)),
    b"C": (Controlled.right, (1,)),
    b"D": (Controlled.left, (1,)),
    b"E": (Controlled.next_line, (1,)),
    b"F": (Controlled.previous_line, (1,)),
    b"G": (Controlled.move_to_column, (1,)),
    b"H": (Controlled.move_to, (1, 1)),
    b"I": (Controlled.tab, (1,)),
    b"J": (Controlled.erase_in_display, (0,)),
    b"K": (Controlled.erase_in_line, (0,)),
    b"L": (Controlled.insert_lines, (1,)),
    b"M": (Controlled.delete_lines, (1,)),
    b"P": (Controlled.delete_cells, (1,)),
    b"S": (Controlled.scroll_up, (1,)),
    b"T": (Controlled.scroll_down, (1,)),
    b"X": (Controlled.erase_characters, (1,)),
    b"Z": (Controlled.back_tab, (1,)),
    b"`": (Controlled.move_to_column, (1,)),
    b"a": (Controlled.right, (1,)),
    b"b": (Controlled.repeat, (1,)),
    b"d": (Controlled.move_to_row, (1,)),
    b"e": (Controlled.down, (1,)),
    b"f": (Controlled.move_to, (1, 1)),
    b"g": (Controlled.clear_tab, (0,)),
    b"r": (Controlled.set_region, (0, 0)),
    b"s": (Controlled.save_cursor, ()),
    b"u": (Controlled.restore_cursor, ()),
    b"!p": (Controlled.soft_reset, ()),
}
_SWITCHES: dict[bytes, tuple[Callable[..., None], bool]] = {
    b"h": (Controlled.set_mode, True),
    b"l": (Controlled.set_mode, False),
    b"?h": (Controlled.set_private_mode, True),
    b"?l": (Controlled.set_private_mode, False),
}
_SHAPE = re.compile(rb"([<-?]?)([0-9;:]*)([ -/]*[@-~])")
_LARGEST = 99_999
_LONGEST = 128  # bytes of numbers that are looked at
_MOST_KNOWN = 50_000
#: Sequences made out before.
known_actions: Final[dict[bytes, Action]] = {}


def action_of(sequence: bytes) -> Action:
    """What `CSI sequence` does."""
    known = known_actions.get(sequence)
    if known is None:
        if len(known_actions) >= _MOST_KNOWN:
            known_actions.clear()
        known = known_actions[sequence] = _made_out(sequence)
    return known


def _made_out(sequence: bytes) -> Action:
    shape = _SHAPE.fullmatch(sequence)
    if shape is None:
        return NOTHING
    prefix, written, final = shape.groups()
    if prefix + final == b"m":
        colour = foreground(written.decode())
        return NOTHING if colour == UNCHANGED else (Controlled.colour, (colour,))
    if b":" in written:
        return NOTHING
    numbers = tuple(min(int(number), _LARGEST) if number else -1 for number in written[:_LONGEST].split(b";"))
    if prefix + final in _SWITCHES:
        switch, on = _SWITCHES[prefix + final]
        return switch, (numbers, on)
    function, defaults = _FUNCTIONS.get(prefix + final, (None, ()))
    given = numbers + (-1,) * len(defaults)
    return function, tuple(max(number, default) for number, default in zip(given, defaults, strict=False))
