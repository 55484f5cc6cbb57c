"""Which sequence is which control function.

`action_of` looks a sequence up with its numbers already made out, so that one that comes a second time costs a
dictionary look-up.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from everturn.sources.terminal.colours import UNCHANGED, foreground
from everturn.sources.terminal.controls import ControlledGrid

#: What a sequence does, and with which arguments; None when it does nothing that shows.
Action = tuple[Callable[..., None] | None, tuple[Any, ...]]

NOTHING: Final[Action] = (None, ())

#: Control characters by their code.
CHARACTERS: Final[dict[int, Callable[[Any], None]]] = {
    0x08: ControlledGrid.backspace,
    0x09: ControlledGrid.tab,
    0x0A: ControlledGrid.line_feed,
    0x0B: ControlledGrid.line_feed,
    0x0C: ControlledGrid.line_feed,
    0x0D: ControlledGrid.carriage_return,
    0x0E: lambda screen: screen.shift(True),
    0x0F: lambda screen: screen.shift(False),
}

#: Escapes by what follows the escape character.
ESCAPES: Final[dict[bytes, Callable[[Any], None]]] = {
    b"7": ControlledGrid.save_cursor,
    b"8": ControlledGrid.restore_cursor,
    b"D": ControlledGrid.line_feed,
    b"E": ControlledGrid.new_line,
    b"H": ControlledGrid.set_tab,
    b"M": ControlledGrid.reverse_index,
    b"c": ControlledGrid.reset,
    b"#8": ControlledGrid.alignment_test,
}

#: Functions by final byte, with the value of each number that is missing; numbers below it count as it.
_FUNCTIONS: dict[bytes, tuple[Callable[..., None], tuple[int, ...]]] = {
    b"@": (ControlledGrid.insert_cells, (1,)),
    b"A": (ControlledGrid.up, (1,)),
    b"B": (ControlledGrid.down, (1,)),
    b"C": (ControlledGrid.right, (1,)),
    b"D": (ControlledGrid.left, (1,)),
    b"E": (ControlledGrid.next_line, (1,)),
    b"F": (ControlledGrid.previous_line, (1,)),
    b"G": (ControlledGrid.move_to_column, (1,)),
    b"H": (ControlledGrid.move_to, (1, 1)),
    b"I": (ControlledGrid.tab, (1,)),
    b"J": (ControlledGrid.erase_in_display, (0,)),
    b"K": (ControlledGrid.erase_in_line, (0,)),
    b"L": (ControlledGrid.insert_lines, (1,)),
    b"M": (ControlledGrid.delete_lines, (1,)),
    b"P": (ControlledGrid.delete_cells, (1,)),
    b"S": (ControlledGrid.scroll_up, (1,)),
    b"T": (ControlledGrid.scroll_down, (1,)),
    b"X": (ControlledGrid.erase_characters, (1,)),
    b"Z": (ControlledGrid.back_tab, (1,)),
    b"`": (ControlledGrid.move_to_column, (1,)),
    b"a": (ControlledGrid.right, (1,)),
    b"b": (ControlledGrid.repeat, (1,)),
    b"d": (ControlledGrid.move_to_row, (1,)),
    b"e": (ControlledGrid.down, (1,)),
    b"f": (ControlledGrid.move_to, (1, 1)),
    b"g": (ControlledGrid.clear_tab, (0,)),
    b"r": (ControlledGrid.set_region, (0, 0)),
    b"s": (ControlledGrid.save_cursor, ()),
    b"u": (ControlledGrid.restore_cursor, ()),
    b"!p": (ControlledGrid.soft_reset, ()),
}
_SWITCHES: dict[bytes, tuple[Callable[..., None], bool]] = {
    b"h": (ControlledGrid.set_mode, True),
    b"l": (ControlledGrid.set_mode, False),
    b"?h": (ControlledGrid.set_private_mode, True),
    b"?l": (ControlledGrid.set_private_mode, False),
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
        known = known_actions[sequence] = _parse_action(sequence)
    return known


def _parse_action(sequence: bytes) -> Action:
    shape = _SHAPE.fullmatch(sequence)
    if shape is None:
        return NOTHING
    prefix, written, final = shape.groups()
    if prefix + final == b"m":
        colour = foreground(written.decode())
        return NOTHING if colour == UNCHANGED else (ControlledGrid.colour, (colour,))
    if b":" in written:
        return NOTHING
    numbers = tuple(min(int(number), _LARGEST) if number else -1 for number in written[:_LONGEST].split(b";"))
    if prefix + final in _SWITCHES:
        switch, on = _SWITCHES[prefix + final]
        return switch, (numbers, on)
    function, defaults = _FUNCTIONS.get(prefix + final, (None, ()))
    given = numbers + (-1,) * len(defaults)
    return function, tuple(max(number, default) for number, default in zip(given, defaults, strict=False))
