"""Patterns that are compiled when first used: most of what a program could look for, it never meets."""

from __future__ import annotations

import re
from typing import Any, cast


def late(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]:
    """The same as `re.compile`, later."""
    return cast("re.Pattern[bytes]", _Late(pattern, flags))


class _Late:
    def __init__(self, pattern: bytes, flags: int) -> None:
        self._given = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        # Called once for each method: from then on it is an attribute like any other.
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found
