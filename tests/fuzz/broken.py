"""Readers with every defect that fuzzing is there to find: it must find these."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any


def _raises(seed: Any, data: bytes, folder: Path, dice: Random) -> None:
    assert data.startswith(b"a walrus"), "no walrus"


def _never_ends(seed: Any, data: bytes, folder: Path, dice: Random) -> None:
    while b"\0" in data:
        pass


def _takes_memory(seed: Any, data: bytes, folder: Path, dice: Random) -> None:
    taken = bytearray(0)
    while b"\0" in data:
        taken += bytes(64 << 20)


def _dies(seed: Any, data: bytes, folder: Path, dice: Random) -> None:
    if b"\0" in data:
        os.abort()


CHECKS: dict[str, Callable[[Any, bytes, Path, Random], None]] = {
    "broken.raises": _raises,
    "broken.never_ends": _never_ends,
    "broken.takes_memory": _takes_memory,
    "broken.dies": _dies,
}
