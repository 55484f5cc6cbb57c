"""The plane is exact on histories whose truth is known, and holds no word of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from everturn.analytics import counts
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all, writer_for
from everturn.capture.writer import rebuild_archive
from everturn.maintenance.forget import forget_sessions
from everturn.maintenance.merge import merge_archive
from everturn.model.analytics import PLANE
from everturn.sources.contract import SearchPlaces
from everturn.store.contract import AnalyticsScope, Store, open_store
from tests.analytics.tool_sessions import stored
from tests.capture.history import FORMAT, SOURCES, ticking
from tests.store.test_contract_analytics import OF_PLANE
from tests.transcript_truth import CallTruth, SessionTruth, Truth
from tests.transcripts import write_history

SUBAGENTS = ("subagent", "sidechain")


def job(store: Store, root: Path, mode: str = "full") -> SyncJob:
    places = SearchPlaces(root / "no-home", {}, "linux", {FORMAT: (root,)})
    return SyncJob(store, SOURCES, places, Policy(mode), "box", "ann", ticking())


def taken_in(root: Path, mode: str = "full") -> Store:
    store = open_store("memory:")
    sync_all(job(store, root, mode))
    counts.catch_up(store)
    return store


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    return write_history(tmp_path_factory.mktemp("history"), seed=5, sessions=16)


@pytest.fixture(scope="module")
def archive(truth: Truth) -> Store:
    return taken_in(truth.root)


def own_calls(truth: Truth, one: SessionTruth) -> list[CallTruth]:
    """Return the calls of a session itself: a fork begins with those of another."""
    copied = {call.call_id for call in truth.sessions[one.forked_from].calls} if one.forked_from else set()
    return [call for call in one.calls if call.call_id not in copied]


def every_own_call(truth: Truth, subagents: bool) -> list[CallTruth]:
    wanted = [one for one in truth.sessions.values() if subagents or one.kind not in SUBAGENTS]
    return [call for one in wanted for call in own_calls(truth, one)]


@pytest.mark.parametrize("subagents", [True, False])
def test_calls_errors_and_durations_are_those_that_were(archive: Store, truth: Truth, subagents: bool) -> None:
    calls = every_own_call(truth, subagents)
    assert any(one.forked_from for one in truth.sessions.values())
    expected = {
        name: (
            len(mine := [call for call in calls if call.name == name]),
            sum(call.status == "error" for call in mine),
            sum(call.status == "open" for call in mine),
            sum(call.batch_size > 1 for call in mine),
            sum(call.duration_ms is not None for call in mine),
            sum(call.duration_ms or 0 for call in mine),
        )
        for name in {call.name for call in calls}
    }
    found = counts.read_counts(archive, AnalyticsScope(subagents=subagents), ("tool_total",)).tools()
    assert {
        row.tool: (row.n, row.errors, row.open, row.parallel, row.timed, row.duration_ms) for row in found
    } == expected


def test_parallel_pairs_are_those_that_were(archive: Store, truth: Truth) -> None:
    expected: Counter[tuple[str, ...]] = Counter()
    for one in truth.sessions.values():
        batches: dict[tuple[int, int], list[str]] = defaultdict(list)
        number = 0
        for call in own_calls(truth, one):
            number += call.batch == 0
            batches[call.turn, number].append(call.name)
        for names in batches.values():
            expected.update(tuple(sorted(pair)) for pair in combinations(names, 2))
    found = counts.read_counts(archive, AnalyticsScope(), ("tool_pair",)).pairs("parallel")
    assert {(row.first, row.second): row.n for row in found} == expected
    assert sum(expected.values()) > 20


def test_paths_are_those_that_were(archive: Store, truth: Truth) -> None:
    """Counted here in another way: every stretch of every turn, those of a fork less those of what it repeats."""
    expected: Counter[tuple[str, ...]] = Counter()
    for one in truth.sessions.values():
        expected.update(_stretches(one.calls))
        if one.forked_from:
            own = {call.call_id for call in own_calls(truth, one)}
            expected.subtract(_stretches([call for call in one.calls if call.call_id not in own]))
    found = counts.read_counts(archive, AnalyticsScope(), ("tool_path",)).paths()
    assert {row.steps: row.n for row in found} == +expected
    assert max(len(steps) for steps in expected) == 6


def _stretches(calls: list[CallTruth]) -> Counter[tuple[str, ...]]:
    turns: dict[int, list[str]] = defaultdict(list)
    for call in calls:
        if not turns[call.turn] or turns[call.turn][-1] != call.name:
            turns[call.turn].append(call.name)
    every = (tuple(names[a:b]) for names in turns.values() for a, b in combinations(range(len(names) + 1), 2))
    return Counter(steps for steps in every if len(steps) <= 6)


def test_turns_and_responses_are_counted_once(archive: Store, truth: Truth) -> None:
    whole = [one for one in truth.sessions.values() if not one.forked_from]
    rows = archive.usage()
    for number, column in enumerate(("tokens_in", "tokens_out", "tokens_cache_read", "tokens_cache_write")):
        of_forks = sum(
            one.tokens[number] - truth.sessions[one.forked_from].tokens[number]
            for one in truth.sessions.values()
            if one.forked_from
        )
        expected = sum(one.tokens[number] for one in whole) + of_forks
        assert sum(getattr(row, column) for row in rows if not row.inherited) == expected
    inherited = sum(row.responses for row in rows if row.inherited)
    steps = [(one, truth.sessions[one.forked_from]) for one in truth.sessions.values() if one.forked_from]
    assert inherited == sum(old.steps for _, old in steps)
    turns = sum(row.turns for row in archive.activity())
    assert turns == sum(one.turns for one in whole) + sum(new.turns - old.turns for new, old in steps)


@pytest.mark.parametrize("mode", ["full", "structure"])
def test_no_word_of_a_conversation_is_in_the_plane(truth: Truth, mode: str) -> None:
    """Every prompt, answer, thought, input and output of this history has a word that is nowhere else."""
    store = taken_in(truth.root, mode)
    words = {word for one in truth.sessions.values() for word in one.marks.values()}
    words |= {one.title for one in truth.sessions.values() if one.title}
    words |= {one.workspace for one in truth.sessions.values() if one.workspace} | {"/home/ann", "shop."}
    words |= {path for one in truth.sessions.values() for _, _, path in one.artifacts}
    assert len(words) > 60
    for table in (*(table.name for table in PLANE), *OF_PLANE):
        held = repr(store.driver.all(f'SELECT * FROM "{table}"'))  # type: ignore[attr-defined]
        assert [word for word in words if word in held] == [], table
    assert counts.read_counts(store, AnalyticsScope()).total("calls") == len(every_own_call(truth, True))
    store.close()


@pytest.mark.slow
def test_the_numbers_do_not_depend_on_how_the_history_came_in(archive: Store, truth: Truth) -> None:
    store = taken_in(truth.root)
    before = counts.read_counts(store, AnalyticsScope()).tables
    rebuild_archive(writer_for(job(store, truth.root)), SOURCES, lambda *numbers: None)
    counts.catch_up(store)
    assert (
        counts.read_counts(store, AnalyticsScope()).tables
        == before
        == counts.read_counts(archive, AnalyticsScope()).tables
    )
    store.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("mode", ["full", "structure"])
def test_a_merged_archive_counts_what_the_other_counted(archive: Store, truth: Truth, mode: str) -> None:
    other, store = taken_in(truth.root, mode), open_store("memory:")
    merge_archive(writer_for(job(store, truth.root)), other, SOURCES, lambda *numbers: None)
    counts.catch_up(store)
    assert counts.read_counts(store, AnalyticsScope()).tables == counts.read_counts(archive, AnalyticsScope()).tables
    other.close()
    store.close()


@pytest.mark.few(1)
@pytest.mark.parametrize("keep_forks", [True, False])
def test_totals_are_right_after_a_session_and_its_forks_are_forgotten(truth: Truth, keep_forks: bool) -> None:
    store = taken_in(truth.root)
    calls = counts.read_counts(store, AnalyticsScope()).total("calls")
    for fork in [one for one in truth.sessions.values() if one.forked_from]:
        (session,) = store.sessions_of(FORMAT, fork.forked_from)
        forget_sessions(writer_for(job(store, truth.root)), SOURCES, [session], keep_forks)
        counts.catch_up(store)
    kept = stored(store)
    with store.write():
        store.reset_counts()  # type: ignore[attr-defined]
    counts.catch_up(store)
    assert stored(store) == kept
    assert 0 < counts.read_counts(store, AnalyticsScope()).total("calls") < calls
    store.close()
