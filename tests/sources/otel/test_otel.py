"""Spans of the GenAI conventions and of OpenInference."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.otel import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
PATHS = [SAMPLES / "spans.jsonl"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem[-12:])
def test_a_sample_reads_as_expected(path: Path) -> None:
    read = goldens.readings(SOURCE, path)
    goldens.assert_golden(path, [goldens.shown(whole) for _, _, whole in read])
    for _, data, whole in read:
        goldens.assert_keeps_promises(SOURCE, data, whole)


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
    pieces = data.splitlines(keepends=True)
    goldens.assert_survives(SOURCE, found, goldens.damaged(pieces, dice, most=4), seed)


@given(seed=st.integers(0, 2**64), odd=st.sampled_from(goldens.ODD_VALUES))
@settings(max_examples=200)
def test_any_value_may_stand_anywhere(seed: int, odd: Any) -> None:
    dice = random.Random(seed)
    found, data, _ = dice.choice(goldens.readings(SOURCE, dice.choice(PATHS)))
    records = [goldens.with_odd_value(json.loads(dice.choice(data.splitlines())), odd, dice) for _ in range(4)]
    odd_data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    goldens.assert_survives(SOURCE, found, odd_data, seed)


def test_what_was_said_before_is_not_said_again() -> None:
    with goldens.ingest("otel", PATHS[0]) as taken:
        (session,) = taken.store.sessions_of("otel", "conv-1")
        assert [(call.name, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("read_file", "ok", ""),
            ("bash", "error", "exit_status"),
        ]
        assert (session.n_turns, session.n_steps, session.n_prompts, session.client) == (1, 2, 1, "zoo")
        assert (session.tokens_in, session.tokens_out, session.tokens_cache_read) == (110, 22, 300)
        (other,) = taken.store.sessions_of("otel", "conv-2")
        assert (other.n_turns, other.n_calls, other.model, other.tokens_in) == (1, 1, "gpt-x", 7)
        assert taken.hits("paint the seals") == ["conv-2"]


@given(seed=st.integers(0, 2**64), odd=st.sampled_from(goldens.ODD_VALUES))
@settings(max_examples=100)
def test_spans_may_hold_anything(tmp_path_factory: pytest.TempPathFactory, seed: int, odd: Any) -> None:
    dice = random.Random(seed)
    lines = [json.loads(line) for line in PATHS[0].read_bytes().splitlines()]
    data = "".join(json.dumps(goldens.with_odd_value(line, odd, dice)) + "\n" for line in lines)
    path = tmp_path_factory.getbasetemp() / "odd.jsonl"
    path.write_text(data)
    for _, lines_of, whole in goldens.readings(SOURCE, path):
        goldens.assert_keeps_promises(SOURCE, lines_of, whole)
