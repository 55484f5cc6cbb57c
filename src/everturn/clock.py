"""The current time and random ids. Everything else receives them as arguments."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

Clock = Callable[[], int]


def now() -> int:
    """Return milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Return a random id of 122 bits."""
    return uuid.uuid4().hex
