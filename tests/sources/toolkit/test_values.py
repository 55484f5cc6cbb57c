"""Values of foreign records: times, numbers and exit codes of any shape."""

from __future__ import annotations

from typing import Any

import pytest

from everturn.sources.toolkit.values import exit_code, milliseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-01T09:00:01.500Z", (1772355601500, "ms")),
        ("1969-12-31T23:59:59.999Z", (-1, "ms")),
        ("2026-03-01T09:00:01Z", (1772355601000, "s")),
        ("2026-03-01T10:00:01.5+01:00", (1772355601500, "ms")),
        ("2026-03-01 09:00:01", (1772355601000, "s")),
        ("2026-03-01", (1772323200000, "day")),
        (1772355601, (1772355601000, "s")),
        (1772355601500, (1772355601500, "ms")),
        (1772355601.25, (1772355601250, "ms")),
        ("2026-03-01T09:00:61.500Z", (None, "")),
        ("2026-13-01T09:00:01.500Z", (None, "")),
        ("2026-03-01T09:00:x1.500Z", (None, "")),
        ("yesterday", (None, "")),
        (float("nan"), (None, "")),
        (10**30, (None, "")),
        (True, (None, "")),
        (None, (None, "")),
    ],
)
def test_times_are_read_with_their_precision(text: Any, expected: tuple[int | None, str]) -> None:
    assert milliseconds(text) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 0), (-1, -1), (1 << 31, None), (True, None), ("1", None), (1.0, None), (None, None)]
)
def test_an_exit_code_is_a_number_of_32_bits(value: Any, expected: int | None) -> None:
    assert exit_code(value) == expected
