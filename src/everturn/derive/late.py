"""Patterns that are compiled when first used: most of what a program could look for, it never meets.

`everturn-hook` uses this module while an agent waits, so `typing` is not imported.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, AnyStr


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """The same as `re.compile`, later."""
    return _LazyPattern(pattern, flags)  # type: ignore[return-value]


class _LazyPattern:
    def __init__(self, pattern: Any, flags: int) -> None:
        self._given = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        # Called once for each method: from then on it is an attribute like any other.
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(re.compile(*self._given), name)
        setattr(self, name, found)
        return found
