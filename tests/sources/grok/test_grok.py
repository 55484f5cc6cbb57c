"""Sessions of Grok Build."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.contract import SearchPlaces
from everturn.sources.grok import SOURCE
from tests.sources import goldens

SAMPLES = Path(__file__).parent / "samples"
PATHS = [SAMPLES / "chat_history.jsonl"]


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


def test_calls_say_what_became_of_them() -> None:
    with goldens.ingest("grok", PATHS[0]) as taken:
        (session,) = taken.store.sessions_of("grok", "samples")
        assert [(call.name, call.kind, call.status, call.error_class) for call in taken.store.calls(session.id)] == [
            ("read_file", "read", "ok", ""),
            ("run_terminal_cmd", "shell", "error", "exit_status"),
            ("web_search", "search", "open", ""),
        ]
        assert (session.n_turns, session.n_prompts, taken.hits("count the walruses")) == (1, 2, ["samples"])


def test_sessions_are_found_with_their_working_folder(tmp_path: Path) -> None:
    session = tmp_path / ".grok" / "sessions" / "%2Fhome%2Fann%2Fzoo" / "0191-x" / "chat_history.jsonl"
    session.parent.mkdir(parents=True)
    session.write_bytes(PATHS[0].read_bytes())
    (root,) = SOURCE.roots(SearchPlaces(tmp_path, {}, "linux"))
    assert [(found.path, found.native_id) for found in SOURCE.find(root)] == [(session, "0191-x")]
    assert SOURCE.folder_of is not None
    assert SOURCE.folder_of(session) == "/home/ann/zoo"
    (session.parent / "summary.json").write_text(json.dumps({"cwd": "/home/ann/other"}))
    assert SOURCE.folder_of(session) == "/home/ann/other"
