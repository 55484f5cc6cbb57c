"""Regular expressions that are compiled when first used: most patterns of a program never meet their text.

`everturn-hook` imports this module while an agent waits, so it imports `re` and nothing else: not `typing`, not the linear-time
engine of `regex`.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, AnyStr


def lazy_pattern(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a substitute for `re.compile(pattern, flags)` that compiles at the first call of a method."""
    return _LazyPattern(pattern, flags)  # type: ignore[return-value]


class _LazyPattern:
    def __init__(self, pattern: Any, flags: int) -> None:
        self._arguments = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        # Called once for each method: from then on it is an attribute like any other.
        if name.startswith("__"):
            raise AttributeError(name)
        method = getattr(re.compile(*self._arguments), name)
        setattr(self, name, method)
        return method
