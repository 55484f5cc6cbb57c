"""Trajectories of ATIF."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.atif import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
PATHS = [SAMPLES / "trajectory.json"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem[-12:])
def test_a_sample_reads_as_expected(path: Path) -> None:
    read = goldens.readings(SOURCE, path)
    goldens.assert_golden(path, [goldens.shown(whole) for _, _, whole in read])
    for _, data, whole in read:
        goldens.assert_keeps_promises(SOURCE, data, whole, lines=False)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem[-12:])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=15)
def test_any_pieces_give_the_same(path: Path, seed: int) -> None:
    for found, data, _ in goldens.readings(SOURCE, path):
        goldens.assert_same_in_pieces(SOURCE, found, data, seed)


@given(seed=st.integers(0, 2**64))
@settings(max_examples=100)
def test_no_damage_stops_the_reader(seed: int) -> None:
    dice = random.Random(seed)
    found, data, _ = dice.choice(goldens.readings(SOURCE, dice.choice(PATHS)))
    goldens.assert_survives(SOURCE, found, goldens.damaged([data], dice, most=1), seed, lines=False)


@given(seed=st.integers(0, 2**64), odd=st.sampled_from(goldens.ODD_VALUES))
@settings(max_examples=200)
def test_any_value_may_stand_anywhere(seed: int, odd: Any) -> None:
    dice = random.Random(seed)
    found, data, _ = dice.choice(goldens.readings(SOURCE, dice.choice(PATHS)))
    document = goldens.with_odd_value(json.loads(data), odd, dice)
    goldens.assert_survives(SOURCE, found, json.dumps(document).encode(), seed, lines=False)


def test_calls_say_what_became_of_them() -> None:
    with goldens.ingest("atif", PATHS[0]) as taken:
        (session,) = taken.store.sessions_of("atif", "run-1")
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("read_file", "read", "ok", ""),
            ("bash", "shell", "error", "exit_status"),
            ("", "other", "orphan", ""),
        ]
        assert (session.n_turns, session.client, session.model) == (1, "1.2.3", "claude-x")
        assert (session.tokens_in, session.tokens_out, session.tokens_cache_read) == (110, 22, 300)
