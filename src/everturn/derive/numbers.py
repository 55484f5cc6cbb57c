"""Numbers in words for people."""

from __future__ import annotations


def plural(n: int, what: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def short_number(number: int) -> str:
    """A large number in few characters: `950`, `12.3k`, `450k`, `1.2M`."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            value = number / size
            return f"{value:.0f}{unit}" if value >= 100 else f"{value:.1f}{unit}"
    return str(number)
