"""The only place that asks for the time or for a random id; everything else takes them as arguments."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

Clock = Callable[[], int]


def now() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """A random id with full entropy."""
    return uuid.uuid4().hex
