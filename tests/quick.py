"""What `make test` does less of than `make check`: EVERTURN_TEST_QUICK is set there."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import is_hypothesis_test, settings

QUICK = bool(os.environ.get("EVERTURN_TEST_QUICK"))

#: One in so many examples of each property is tried, but not fewer than a handful.
ONE_IN, HANDFUL = 10, 5


def try_fewer_examples(test: Any) -> None:
    """Make a property be tried less often, also one with its own `@settings(max_examples=…)`."""
    if is_hypothesis_test(test) and not hasattr(test, "has_fewer_examples"):
        wanted: settings = test._hypothesis_internal_use_settings  # there is no other way to change what was decorated
        fewer = max(wanted.max_examples // ONE_IN, HANDFUL)
        test._hypothesis_internal_use_settings = settings(wanted, max_examples=min(fewer, wanted.max_examples))
        test.has_fewer_examples = True
