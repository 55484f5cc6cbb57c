"""What `make test` does less of than `make test-full`: EVERTURN_TEST_QUICK is set there."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest
from hypothesis import is_hypothesis_test, settings

T = TypeVar("T")

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


def some(things: Sequence[T], number: int) -> Sequence[T]:
    """So many of the things, from the first to the last, in `make test`; all of them otherwise."""
    if not QUICK or len(things) <= number:
        return things
    step = (len(things) - 1) / (number - 1) if number > 1 else 0
    return [things[round(place * step)] for place in range(number)]


def choose_few(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return the cases that are left out: all but `n` of a test marked with `few(n)`."""
    cases: dict[tuple[Any, str], list[pytest.Item]] = defaultdict(list)
    numbers: dict[tuple[Any, str], int] = {}
    for item in items:
        mark = item.get_closest_marker("few")
        if mark is not None:
            test = item.path, getattr(item, "originalname", item.name)
            cases[test].append(item)
            (numbers[test],) = mark.args
    return {item for test, every in cases.items() for item in every} - {
        item for test, every in cases.items() for item in some(every, numbers[test])
    }
