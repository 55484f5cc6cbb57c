"""A sample reads as its golden says, and no damage stops the reader of the lines that a recording is unpacked into."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.terminal import SOURCE
from tests.sources.goldens import assert_golden, assert_keeps_promises, assert_survives, damaged, readings, shown

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.txt"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_reads_as_expected(path: Path) -> None:
    sessions = readings(SOURCE, path)
    for _, data, whole in sessions:
        assert_keeps_promises(SOURCE, data, whole)
    assert_golden(path, [shown(whole) for _, _, whole in sessions])


@given(seed=st.integers(0, 2**32))
@settings(max_examples=50)
def test_no_damage_stops_the_reader_or_escapes_the_count(seed: int) -> None:
    for candidate, data, _ in readings(SOURCE, SAMPLES[0]):
        assert_survives(SOURCE, candidate, damaged(data.splitlines(keepends=True), random.Random(seed)), seed)
