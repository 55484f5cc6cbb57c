"""Cosines seen from the centre, and their mixture with the scores of words."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.retrieval.nearness import TOP, Nearness, NearnessScan, borrow_cosines, mix_scores
from everturn.store.contract import IndexHit
from everturn.store.vector_file import make_block, pack_vectors, sum_of_block

WEIGHT = 0.5


def random_vectors(count: int, dimensions: int, seed: int = 1) -> list[list[float]]:
    rolls = random.Random(seed)
    return [[rolls.gauss(0.3, 1) for _ in range(dimensions)] for _ in range(count)]


def test_what_all_texts_have_in_common_tells_nothing() -> None:
    packed = pack_vectors([[5.0, 1.0], [5.0, -1.0]] * 500)
    n, total = sum_of_block(make_block(enumerate(packed)), 2)
    near, far = (Nearness([5.0, 1.0], n, total).cosine(one) for one in packed[:2])

    assert near > 0.9 and far < -0.8


def test_the_centre_of_a_few_vectors_is_drawn_towards_zero() -> None:
    (packed,) = pack_vectors([[3.0, 4.0]])

    assert Nearness([3.0, 4.0], 1, [0.6, 0.8]).cosine(packed) > 0.99


def test_null_vectors_and_other_dimensions_have_no_cosine() -> None:
    nearness = Nearness([1.0, 0.0], 0, [])
    assert [nearness.cosine(one) for one in pack_vectors([[0.0, 0.0]])] == [0.0]
    assert [nearness.cosine(one) for one in pack_vectors([[1.0, 0.0, 0.0]])] == [0.0]
    assert Nearness([0.0, 0.0], 0, []).direction == []


@pytest.mark.needs("module:numpy")
def test_a_scan_gives_the_cosines_that_are_computed_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everturn.retrieval.nearness._AT_ONCE", 10)
    packed = [*pack_vectors(random_vectors(50, 8), [number / 50 for number in range(50)]), *pack_vectors([[0.0] * 8])]
    n, total = sum_of_block(make_block(enumerate(packed)), 8)
    nearness = Nearness(random_vectors(1, 8, seed=2)[0], n, total)
    blocks = [(session, make_block(enumerate(packed[session * 5 : session * 5 + 5]))) for session in range(11)]
    scan = NearnessScan(nearness, blocks)
    keys = [(number // 5, number % 5) for number in range(51)]
    expected = {key: nearness.cosine(one) for key, one in zip(keys, packed, strict=True)}

    assert scan.cosines(keys) == pytest.approx(expected, abs=1e-5)
    assert scan.cosines([(0, 9), (99, 0)]) == {}
    best = sorted(expected, key=lambda key: -expected[key])[:7]
    assert [key for key, _ in scan.nearest(7)] == best
    assert len(scan.nearest(1000)) == sum(cosine > 0 for cosine in expected.values())


@pytest.mark.needs("module:numpy")
def test_a_scan_of_nothing_and_of_damaged_blocks_finds_nothing() -> None:
    nearness = Nearness([1.0, 0.0], 0, [])
    assert NearnessScan(nearness, []).nearest(5) == []
    assert NearnessScan(nearness, [(1, b"short"), (2, b"")]).nearest(5) == []


@pytest.mark.needs("module:numpy")
def test_the_scan_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everturn.retrieval.nearness._AT_ONCE", 10)
    monkeypatch.setattr("everturn.retrieval.nearness.MOST_SCANNED", 20)
    (packed,) = pack_vectors([[1.0, 0.0]])
    read: list[int] = []

    def blocks() -> object:
        for session in range(100):
            read.append(session)
            yield session, make_block([(seq, packed) for seq in range(10)])

    assert len(NearnessScan(Nearness([1.0, 0.0], 0, []), blocks()).nearest(1000)) == 20  # type: ignore[arg-type]
    assert len(read) == 2


# the mixture ----------------------------------------------------------------------------------------------------------
def test_a_message_that_only_meaning_found_stays_behind_the_best_hit_by_words() -> None:
    hits = [IndexHit(1, 0, 9.0), IndexHit(1, 1, 2.0)]
    mixed = mix_scores(hits, {(1, 0): 0.1, (7, 7): 0.9}, [(7, 7)], WEIGHT)

    assert [(hit.session, hit.seq) for hit in mixed] == [(1, 0), (7, 7), (1, 1)]


def test_equals_stay_in_the_order_of_words_and_no_hits_are_no_mistake() -> None:
    hits = [IndexHit(1, seq, 1.0) for seq in (3, 1, 2)]
    assert mix_scores(hits, {(1, seq): 0.2 for seq in (1, 2, 3)}, [], WEIGHT) == [
        IndexHit(1, seq, 1.1) for seq in (3, 1, 2)
    ]
    assert mix_scores([], {}, [], WEIGHT) == []


def test_a_message_without_a_vector_has_the_meaning_of_those_beside_it() -> None:
    cosines = {(1, 4): 0.3, (1, 7): 0.6, (1, 9): 0.9, (2, 5): 0.8}

    assert borrow_cosines([(1, 4), (1, 5), (1, 0), (3, 5)], cosines) == {(1, 4): 0.3, (1, 5): 0.6}


@given(
    scores=st.lists(st.floats(0.01, 50), min_size=1, max_size=TOP + 60),
    weight=st.floats(0, 5),
    seed=st.integers(0, 1000),
)
def test_more_vectors_lose_no_hit_by_words_and_scores_never_rise(scores: list[float], weight: float, seed: int) -> None:
    hits = [IndexHit(1, seq, score) for seq, score in enumerate(sorted(scores, reverse=True))]
    rolls = random.Random(seed)
    nearest = [(2, seq) for seq in range(50)]
    known = [(1, seq) for seq in range(len(hits)) if seq % 3]
    cosines = {key: rolls.uniform(-1, 1) for key in (*known, *nearest)}
    mixed = mix_scores(hits, cosines, nearest, weight)
    keys = [(hit.session, hit.seq) for hit in mixed]

    assert len(set(keys)) == len(keys) == len(hits) + len(nearest)
    assert {(1, seq) for seq in range(min(TOP, len(hits)))} <= set(keys[: TOP + len(nearest)])
    assert all(one.score >= other.score for one, other in pairwise(mixed))
