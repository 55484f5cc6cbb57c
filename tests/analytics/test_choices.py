"""The same question has the same answer whether it is asked of the totals or of a choice that is everything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from everturn.analytics.inspect import inspect_tools
from everturn.analytics.path_counts import Sample, count_paths
from everturn.analytics.paths import find_paths
from everturn.analytics.suggest import find_suggestions
from everturn.model.analytics import Trail
from everturn.store.contract import AnalyticsScope, SessionFilter, Store, open_store
from tests.analytics.histories import chain, fill, history, session
from tests.capture.history import OTHER
from tests.recall.archives import Archive

ALL_OF_IT = AnalyticsScope(SessionFilter(since=0))


@pytest.fixture(scope="module")
def full() -> Iterator[Store]:
    with closing(open_store("memory:")) as store:
        fill(store, history(5, 60))
        fill(store, [session(f"t{n}/agent-1", chain("Reed!unknown_tool", "Read"), kind="subagent") for n in range(4)])
        yield store


def test_paths_are_the_same(full: Store) -> None:
    for by_chance_too in (False, True):
        whole, chosen = (find_paths(full, scope, 50, by_chance_too) for scope in (AnalyticsScope(), ALL_OF_IT))
        assert whole.items and whole == chosen


def test_details_of_paths_are_the_same(full: Store) -> None:
    whole, chosen = count_paths(full, AnalyticsScope()), count_paths(full, ALL_OF_IT)
    assert (whole.n, whole.steps, whole.windows) == (chosen.n, chosen.steps, chosen.windows)
    assert (whole.working, whole.missing) == (chosen.working, chosen.missing)
    assert whole.closer(list(whole.n)) == chosen.closer(list(whole.n))


@pytest.mark.parametrize("tool", ["Read", "mcp__*", "*"])
def test_inspections_are_the_same(full: Store, tool: str) -> None:
    assert inspect_tools(full, AnalyticsScope(), tool) == inspect_tools(full, ALL_OF_IT, tool)


def test_suggestions_are_the_same(full: Store) -> None:
    assert find_suggestions(full, AnalyticsScope()) == find_suggestions(full, ALL_OF_IT)


def test_what_a_fork_repeats_is_counted_once_either_way(store: Store, tmp_path: Path) -> None:
    """A path that ends in the fork's own call is the fork's, though it began in what it repeats."""
    archive = Archive(store, tmp_path)
    before = b"".join(
        [
            archive.history.line("user", "go"),
            *(archive.use("Read", f"c{n}") + archive.back(f"c{n}", "x") for n in range(6)),
        ]
    )
    after = b"".join(archive.use(tool, tool) + archive.back(tool, "x") for tool in ("Edit", "Bash", "Edit", "Bash"))
    archive.take_in(before)
    archive.take_in(archive.history.fork(before + after * 3, OTHER), sid=OTHER)
    whole, chosen = count_paths(store, AnalyticsScope()), count_paths(store, ALL_OF_IT)
    assert whole.calls == chosen.calls == 6 + 12
    assert (whole.n, whole.steps, whole.windows) == (chosen.n, chosen.steps, chosen.windows)
    assert whole.n["Edit", "Bash"] == 6 and whole.closer(list(whole.n)) == chosen.closer(list(whole.n))


def test_a_sample_is_spread_over_all_and_never_large() -> None:
    sample = Sample()
    for number in range(10_000):
        sample.add(number, Trail(["Read"], [0], [0], [0], [0], [1]))
        sample.add(-1, Trail())
    kept = [number for number, _ in sample.kept]
    assert 500 <= len(kept) <= 1000 and kept[0] == 0 and kept[-1] > 9_900
    assert len({after - before for before, after in pairwise(kept)}) == 1
