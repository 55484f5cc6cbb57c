"""Exports in every shape, damaged ones, and real ones."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everturn.sources.contract import SourceCandidate
from everturn.sources.opencode import SOURCE
from everturn.sources.opencode.files import shape_of
from tests.sources import goldens
from tests.sources.opencode.building import PARENT

SAMPLES = Path(__file__).parent / "samples"
PATHS = sorted(path for path in SAMPLES.iterdir() if not path.name.endswith(".expected.json"))
CORPUS = "opencode-export"


@given(seed=st.integers(0, 2**32))
@settings(max_examples=300)
def test_damage_does_not_stop_a_reader(seed: int) -> None:
    dice = random.Random(seed)
    path = dice.choice(PATHS)
    whole = path.read_bytes()
    lines = path.suffix == ".jsonl"
    data = goldens.damaged(whole.splitlines(keepends=True) if lines else [whole], dice, 6 if lines else 1)
    goldens.assert_survives(SOURCE, SourceCandidate(path, "main", PARENT), data, seed, lines=shape_of(data) == "lines")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_what_was_taken_in_is_found_again(path: Path) -> None:
    assert goldens.found_for(SOURCE, path, path.read_bytes()).native_id == PARENT
    with goldens.ingest("opencode", path) as taken:
        assert taken.hits("walrus") == [PARENT]
        (session,) = taken.store.sessions_of("opencode", PARENT)
        assert session.n_turns > 1


# real files -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", goldens.corpus(CORPUS))
def test_a_real_export_is_read_and_kept(path: Path) -> None:
    ((found, data, whole),) = goldens.readings(SOURCE, path)
    assert found.native_id == path.stem
    goldens.assert_keeps_promises(SOURCE, data, whole, lines=False)
    assert whole.problems == whole.tail == []
    assert {disposition for _, _, disposition in whole.census} == {"message", "known"}
    with goldens.ingest("opencode", path) as taken:
        (session,) = taken.store.sessions_of("opencode", path.stem)
        calls = list(taken.store.calls(session.id))
        assert session.n_calls == len(calls) > 0
        assert {call.status for call in calls} <= {"ok", "error"}
        assert session.n_steps == sum(n for (kind, _, _), n in whole.census.items() if kind == "assistant")


def test_the_real_exports_add_up() -> None:
    paths = goldens.corpus_files(CORPUS)
    if not paths:
        pytest.skip("no real files beside the checkout")
    blocks = [b for p in paths for _, _, whole in goldens.readings(SOURCE, p) for m in whole.all() for b in m.blocks]
    results = [block.result for block in blocks if block.result is not None]
    assert sum(block.call is not None for block in blocks) == len(results) == 827
    assert sum(result.error_class not in ("", "exit_status") for result in results) == 11
    assert sum(result.error_class == "exit_status" for result in results) == 60
    assert {result.error_class for result in results} == {"", "exit_status", "not_found", "invalid_input"}


def test_of_the_whole_corpus_only_the_exports_are_claimed() -> None:
    goldens.assert_claims_only(SOURCE, CORPUS)
