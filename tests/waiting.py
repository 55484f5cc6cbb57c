"""Waiting for what another thread or process does: as long as it takes, and no longer than a busy machine needs."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds. Only a test that fails waits that long.
PATIENCE = 300.0


def wait_until(is_so: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Look again and again until it is so; fail when it does not come."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"what was waited for did not come within {seconds:g} s"
        time.sleep(0.01)
