"""A short run of the fuzzing that `python -m tests.fuzz` does at length: the same inputs each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from everturn.sources.contract import all_sources
from tests.fuzz import broken
from tests.fuzz.checks import prepared, readers
from tests.fuzz.child import attempt, input_of
from tests.fuzz.watching import fuzz
from tests.quick import QUICK

FEW, MANY = 8 if QUICK else 20, 90


@pytest.mark.parametrize("reader", readers())
def test_a_little_random_damage_stops_no_reader(reader: str, tmp_path: Path) -> None:
    seeds, check = prepared(reader)
    for number in range(FEW):
        failure = attempt(reader, 7, number, seeds, check, tmp_path / "in")
        assert failure is None, failure.trace


@pytest.mark.slow
@pytest.mark.parametrize("reader", readers())
def test_random_damage_stops_no_reader(reader: str, tmp_path: Path) -> None:
    outcome = fuzz(reader, seed=7, seconds=300, inputs=MANY, save=tmp_path)
    assert [failure.trace for failure in outcome.failures] == []
    assert outcome.inputs == MANY


def test_every_source_is_fuzzed_from_several_sound_files() -> None:
    assert set(all_sources()) < set(readers())
    for reader in readers():
        seeds, _ = prepared(reader)
        assert len(seeds) >= 2, reader
        assert len({input_of(reader, 1, number, seeds)[1] for number in range(20)}) > 15, reader


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("reader", "words"),
    [
        ("broken.raises", "AssertionError"),
        ("broken.never_ends", "does not end: more than 1 CPU seconds"),
        pytest.param("broken.takes_memory", "MemoryError", marks=pytest.mark.slow),
        pytest.param("broken.dies", "died of signal 6", marks=pytest.mark.slow),
    ],
)
def test_a_reader_that_breaks_is_found_and_the_input_kept(reader: str, words: str, tmp_path: Path) -> None:
    outcome = fuzz(reader, seed=7, seconds=60, inputs=25, save=tmp_path, limit=1, memory=256)
    assert outcome.inputs == 25
    assert any(failure.what.startswith(words) for failure in outcome.failures)
    seeds, _ = prepared(reader)
    for failure, path in zip(outcome.failures, outcome.saved, strict=True):
        assert path.read_bytes() == input_of(reader, 7, failure.number, seeds)[1]
        assert f"--reader {reader} --seed 7 --only {failure.number}" in path.with_name(f"{path.name}.txt").read_text()


def test_only_readers_made_for_it_are_broken() -> None:
    assert not set(broken.CHECKS) & set(readers())
