"""Relations with two sides, and words that rule each other out, in statements of a model."""

from __future__ import annotations

import pytest

from everturn.restore.claim_conflicts import find_open_item
from everturn.restore.claim_counts import find_count_faults
from everturn.restore.claim_polarity import find_opposite_words
from everturn.restore.claim_relations import find_exchanged, find_other_restriction

ORDERS = [
    ("Take the backup before the upgrade", "Take the upgrade before the backup"),
    ("The search prefers the cache and falls back to the disk", "The search prefers the disk and falls back to the cache"),
    ("先备份数据库，再升级服务", "先升级服务，再备份数据库"),
    ("検索はキャッシュを優先し、失敗時は`disk`を使う", "検索は`disk`を優先し、失敗時はキャッシュを使う"),
    ("First `seed.py` runs, then `load.py`", "First `load.py` runs, then `seed.py`"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), ORDERS)
def test_the_sides_of_a_relation_are_told_apart(one: str, other: str) -> None:
    assert find_exchanged(one, [other]) == other
    assert find_exchanged(other, [one]) == one
    assert find_exchanged(one, [one]) == find_exchanged(other, [other]) == ""


def test_a_restriction_to_something_else_is_found() -> None:
    recorded = ["Only the German edition has the index"]
    assert find_other_restriction("Only the English edition has the index", recorded) == recorded[0]
    assert find_other_restriction("The index is in the German edition only", recorded) == ""
    assert find_other_restriction("The edition has an index", recorded) == ""


@pytest.mark.parametrize(("text", "recorded", "is_against"), [
    ("The nightly upload was accepted", "The nightly upload was rejected", True),
    ("The nightly upload was not accepted", "The nightly upload was rejected", False),
    ("The upload jobs run in parallel", "The upload jobs run one after another", True),
    ("The upload list stands in a single place", "The upload list is scattered", True),
    ("The upload list stands in a single place", "There is no single upload list", True),
    ("Keep the upload labels and remove the counters", "Remove the upload labels", False),
])  # fmt: skip
def test_words_that_rule_each_other_out_are_held_clause_by_clause(text: str, recorded: str, is_against: bool) -> None:
    assert bool(find_opposite_words(text, [recorded])) is is_against


def test_what_a_list_of_next_steps_has_is_not_done() -> None:
    spoken = "Done\n- import of stamps\n\nNext steps:\n- export of stamps to CSV"
    assert find_open_item("The export of stamps to CSV is implemented", spoken) == "export of stamps to CSV"
    assert find_open_item("The import of stamps is implemented", spoken) == ""


def test_a_part_of_the_tests_is_counted_with_its_verdict() -> None:
    recorded = "side-panel.spec (7 tests | 4 failed)"
    assert not list(find_count_faults("4 of the 7 side-panel tests failed", recorded))
    assert list(find_count_faults("6 of the 7 side-panel tests failed", recorded))
