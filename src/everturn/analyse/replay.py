"""Replay: when to show what, so that a session runs before the eyes as it ran then, faster.

Times of a transcript are not always in order, and between two turns there may be days: nobody waits for what came earlier
than what is on the screen, and no longer than `longest` for anything.
"""

from __future__ import annotations

from collections.abc import Callable


class Pace:
    """Waits between the moments of a session. `sleep` takes seconds; a speed of 0 does not wait at all."""

    def __init__(self, speed: float, longest: float, sleep: Callable[[float], None]) -> None:
        self._speed, self._longest, self._sleep = speed, longest, sleep
        self._shown: int | None = None

    def wait_for(self, at: int | None) -> float:
        """Wait until this moment (milliseconds) would come after the last one; how long that was."""
        wait = self.until(at)
        if wait > 0:
            self._sleep(wait)
        return wait

    def until(self, at: int | None) -> float:
        """The seconds to wait for this moment, which is then the last one."""
        before, self._shown = self._shown, at if self._shown is None else max(self._shown, at or self._shown)
        if at is None or before is None or at <= before or self._speed <= 0:
            return 0.0
        return min((at - before) / 1000 / self._speed, self._longest)
