"""How tools are used: a million calls, habits that were planted and none where there are none, and the rules of others."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

from benchmarks.corpora import Corpora, Corpus
from benchmarks.figures import Figure, exact
from benchmarks.processes import Place, everturn, median_cpu
from everturn.analytics.paths import find_paths
from everturn.store.contract import AnalyticsScope, open_store
from tests.analytics.histories import PLANTED, fill, history, shuffled

SESSIONS = 10_900  # make a million calls
UNFILTERED, FILTERED, STATS = 1.0, 6.0, 0.3  # CPU seconds
SEEDS = range(20, 26)
_SMALL = 150  # sessions with planted habits
_EVERYTHING = ("--since", "2000-01-01")  # a choice that leaves nothing out: nothing can be taken from the totals

Pair = tuple[str, str]


def figures(corpora: Corpora) -> Iterator[Figure]:
    """Cost on a million calls, then what is found, then parallel calls beside other rules for them."""
    yield from _million(corpora.folder / "analyse")
    yield from _planted()
    if corpora.real is None:
        yield Figure("parallel calls, real corpus", None, note=corpora.why_not_real)
    else:
        yield from _parallel(corpora.real)


# cost -----------------------------------------------------------------------------------------------------------------
def _million(folder: Path) -> Iterator[Figure]:
    place = Place(folder)
    place.archive.mkdir(parents=True)
    with closing(open_store(str(place.db))) as store:
        calls = fill(store, history(1, SESSIONS, turns=8, length=20))
    told = f"{calls:,} calls, {SESSIONS:,} sessions"
    cost = everturn(place, "paths", "--turns", "--json")
    yield Figure("first count of everything", cost.cpu, "CPU-s", note=f"{told}; {1e6 * cost.cpu / calls:.0f} µs a call")
    start_up = median_cpu([everturn(place, "turns", "--top", "1") for _ in range(3)])
    yield Figure("a question with next to nothing to do", start_up, "CPU-s", note="start-up, within all figures below")
    questions = (
        ("paths", ("paths", "--json"), UNFILTERED, FILTERED),
        ("inspect", ("inspect", "Bash", "--json"), UNFILTERED, FILTERED),
        ("suggest", ("suggest", "--json"), UNFILTERED, FILTERED),
        ("stats", ("stats", "--json"), STATS, None),
        ("struggles", ("struggles", "--json"), None, None),
        ("turns --patterns", ("turns", "--patterns", "--json"), None, None),
    )
    for name, words, bar, filtered in questions:
        costs = [everturn(place, *words) for _ in range(3)]
        peak = max(cost.peak for cost in costs) / 1e6
        yield Figure(f"everturn {name}", median_cpu(costs), "CPU-s", bar, note=f"{told}; {peak:.0f} MB")
        if filtered is not None:
            cost = everturn(place, *words, *_EVERYTHING)
            note = f"of a choice of sessions that is all of them; {cost.peak / 1e6:.0f} MB"
            yield Figure(f"everturn {name} --since", cost.cpu, "CPU-s", filtered, note=note)


# what is found --------------------------------------------------------------------------------------------------------
def _planted() -> Iterator[Figure]:
    missed, invented = [], []
    for seed in SEEDS:
        with closing(open_store("memory:")) as store:
            fill(store, history(seed, _SMALL))
            found = {one.tools for one in find_paths(store, AnalyticsScope(), 1000).items}
        missed += [f"seed {seed}: {' → '.join(path)}" for path in PLANTED if path not in found]
        with closing(open_store("memory:")) as store:
            fill(store, shuffled(history(seed, _SMALL), seed))
            invented += [f"seed {seed}: {one.path}" for one in find_paths(store, AnalyticsScope(), 1000).items]
    told = f"{len(SEEDS)} histories of {_SMALL} sessions"
    yield exact("planted paths that were not found", missed, f"{len(PLANTED)} in each of {told}")
    yield exact("paths found where calls were shuffled", invented, told)


# parallel calls -------------------------------------------------------------------------------------------------------
def _parallel(corpus: Corpus) -> Iterator[Figure]:
    """The truth is what the records say themselves, read here without any code of ours: one response, one batch."""
    truth: set[Pair] = set()
    by_result: set[Pair] = set()
    by_parent: set[Pair] = set()
    for path in corpus.paths:
        if path.suffix == ".jsonl":
            records = list(_records(path))
            truth |= _pairs(_by_response(records))
            by_result |= _pairs(_until_a_result(records))
            by_parent |= _pairs(_by_parent(records))
    everturn(corpus.place, "sync")
    ours = _ours(corpus.place.db)
    told = f"{len(truth):,} pairs of parallel calls"
    yield Figure("parallel pairs found", 100 * len(ours & truth) / len(truth), "%", 100, at_least=True, note=told)
    yield exact("parallel pairs that are none", map(str, sorted(ours - truth)), told)
    rules = (
        ("no result in between", by_result), ("the same parent", by_parent), ("either of the two", by_result | by_parent)
    )  # fmt: skip
    for name, found in rules:
        right = len(found & truth)
        precision = f"{100 * right / len(found):.1f} % of what it finds is right" if found else "it finds none"
        yield Figure(f"parallel pairs by the rule: {name}", 100 * right / len(truth), "%", note=precision)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    for line in path.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        data = record.get("data") if isinstance(record, dict) else None
        nested = data.get("message") if isinstance(data, dict) else None  # a subagent's, told by its parent
        for one in (record, nested):
            if isinstance(one, dict) and isinstance(one.get("message"), dict):
                yield one


def _blocks(record: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    content = record["message"].get("content")
    return (
        [one for one in content if isinstance(one, dict) and one.get("type") == kind]
        if isinstance(content, list)
        else []
    )


def _by_response(records: list[dict[str, Any]]) -> Iterable[list[str]]:
    batches: dict[str, list[str]] = defaultdict(list)
    for record in records:
        for block in _blocks(record, "tool_use"):
            batches[record["message"].get("id", "")].append(block["id"])
    return batches.values()


def _until_a_result(records: list[dict[str, Any]]) -> Iterable[list[str]]:
    batch: list[str] = []
    for record in sorted(records, key=lambda one: str(one.get("timestamp", ""))):
        if _blocks(record, "tool_result") or isinstance(record["message"].get("content"), str):
            yield batch
            batch = []
        batch += [block["id"] for block in _blocks(record, "tool_use")]
    yield batch


def _by_parent(records: list[dict[str, Any]]) -> Iterable[list[str]]:
    batches: dict[str, list[str]] = defaultdict(list)
    for record in records:
        for block in _blocks(record, "tool_use") if record.get("parentUuid") else ():
            batches[record["parentUuid"]].append(block["id"])
    return batches.values()


def _pairs(batches: Iterable[list[str]]) -> set[Pair]:
    return {pair for batch in batches for pair in combinations(sorted(set(batch)), 2)}


def _ours(db: Path) -> set[Pair]:
    from everturn.analytics.turns import sessions_of

    with closing(open_store(str(db))) as store:
        batches: dict[tuple[int, int], list[str]] = defaultdict(list)
        for session in sessions_of(store, AnalyticsScope()):
            for call in store.calls(session.id):
                if call.status != "orphan":
                    batches[session.id, call.step].append(call.call_id)
    return _pairs(batches.values())
