"""The generic contract of formats whose samples need no preparation. A format in this table needs no such tests of its own."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.contract import Source, SourceCandidate, all_sources
from tests.sources import goldens


class Sample(NamedTuple):
    """A file below `samples`, of lines or one document."""

    name: str
    lines: bool = True
    is_told_by_first: bool = False  # whether these are lines; so the first one is not damaged


FORMATS = {
    "atif": Sample("trajectory.json", lines=False),
    "grok": Sample("chat_history.jsonl"),
    "inspect_eval": Sample("zoo.json"),  # unpacked, one line for each message
    "junie": Sample("session-260301-100000-ab12/events.jsonl"),
    "kiro": Sample("5ea11111-0000-4000-8000-000000000001.jsonl", is_told_by_first=True),
    "openhands": Sample("0a1b2c/base_state.json"),  # unpacked
    "otel": Sample("spans.jsonl"),
}
every_format = pytest.mark.parametrize("name", FORMATS)


@cache
def read_sample(name: str) -> tuple[Source, Path, list[tuple[SourceCandidate, bytes, goldens.Whole]]]:
    """Return the source, its sample and the conversations in it."""
    source, path = all_sources()[name], Path(__file__).parent / name / "samples" / FORMATS[name].name
    return source, path, goldens.readings(source, path)


@every_format
def test_a_sample_reads_as_expected(name: str) -> None:
    source, path, read = read_sample(name)
    goldens.assert_golden(path, [goldens.shown(whole) for _, _, whole in read])
    for _, data, whole in read:
        goldens.assert_keeps_promises(source, data, whole, FORMATS[name].lines)


@every_format
@given(seed=st.integers(0, 2**32))
@settings(max_examples=15)
def test_any_pieces_give_the_same(name: str, seed: int) -> None:
    source, _, read = read_sample(name)
    for found, data, _ in read:
        goldens.assert_same_in_pieces(source, found, data, seed)


@every_format
@given(seed=st.integers(0, 2**64))
@settings(max_examples=100)
def test_no_damage_stops_the_reader(name: str, seed: int) -> None:
    source, _, read = read_sample(name)
    dice, lines = random.Random(seed), FORMATS[name].lines
    found, data, _ = dice.choice(read)
    pieces = data.splitlines(keepends=True) if lines else [data]
    first = pieces[0] if FORMATS[name].is_told_by_first else b""
    harmed = first + goldens.damaged(pieces, dice, most=4 if lines else 1)
    goldens.assert_survives(source, found, harmed, seed, lines=lines)


@every_format
@given(seed=st.integers(0, 2**64), odd=st.sampled_from(goldens.ODD_VALUES))
@settings(max_examples=200)
def test_any_value_may_stand_anywhere(name: str, seed: int, odd: Any) -> None:
    source, _, read = read_sample(name)
    dice, lines = random.Random(seed), FORMATS[name].lines
    found, data, _ = dice.choice(read)
    texts = [dice.choice(data.splitlines()) for _ in range(4)] if lines else [data]
    odd_data = b"".join(
        json.dumps(goldens.with_odd_value(json.loads(text), odd, dice)).encode() + b"\n" for text in texts
    )
    goldens.assert_survives(source, found, odd_data, seed, lines=lines)
