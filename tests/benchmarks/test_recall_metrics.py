"""What the recall benchmark counts, worked out by hand."""

from __future__ import annotations

from math import log2

import pytest

from benchmarks.recall.metrics import judge, mean, percentile


def test_a_right_answer_in_first_place_is_perfect() -> None:
    values = judge(["a", "b"], {"a"})

    assert set(values.values()) == {1.0}


def test_an_answer_without_anything_right_is_worth_nothing() -> None:
    assert set(judge(["b", "c"], {"a"}).values()) == {0.0}
    assert set(judge([], {"a"}).values()) == {0.0}


def test_hits_ask_for_any_and_recall_for_all_that_is_right() -> None:
    values = judge(["x", "a", "y", "b", "z", "c"], {"a", "b", "c", "d"})

    assert (values["hit@1"], values["hit@5"], values["hit@10"]) == (0, 1, 1)
    assert (values["recall@1"], values["recall@5"], values["recall@10"]) == (0, 0.5, 0.75)
    assert values["MRR"] == 0.5


def test_gain_falls_with_the_place() -> None:
    best = 1 + 1 / log2(3)

    assert judge(["x", "a", "b"], {"a", "b"})["nDCG@10"] == pytest.approx((1 / log2(3) + 1 / 2) / best)


def test_what_stands_beyond_the_tenth_place_adds_no_gain() -> None:
    ranking = [f"wrong {n}" for n in range(10)] + ["a"]

    assert judge(ranking, {"a"})["nDCG@10"] == 0
    assert judge(ranking, {"a"})["MRR"] == pytest.approx(1 / 11)


def test_an_answer_given_twice_counts_where_it_stands_first() -> None:
    assert judge(["x", "x", "x", "x", "x", "a"], {"a"})["MRR"] == 0.5


def test_means_are_taken_over_the_questions() -> None:
    scores = mean([judge(["a"], {"a"}), judge(["b"], {"a"})])

    assert (scores.n, scores.values["hit@1"]) == (2, 0.5)


def test_percentiles_are_values_that_were_measured() -> None:
    times = [float(n) for n in range(1, 101)]

    assert (percentile(times, 0.5), percentile(times, 0.95)) == (50, 95)
    assert percentile([], 0.5) == 0
