"""Reading the archive: which session is meant, what it hangs on, what was said in it, where a word stands.

Plain functions that take the store first. Nothing here writes. Cost follows the page or the turns asked for.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")


class ResultPage(Struct, Generic[T], frozen=True):
    """Some of the answers and the cursor for the next ones ("" at the end)."""

    items: list[T]
    next: str = ""
    note: str = ""  # what a reader must know about these answers, "" when nothing
