"""Checkpoints of LangGraph: its own suite on every engine, and what that suite does not ask."""

from __future__ import annotations

import asyncio
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import pytest
from typing_extensions import TypedDict

from everturn.errors import Conflict, UsageError
from everturn.integrations.archive import Archive

pytestmark = pytest.mark.needs("module:langgraph")

THREAD = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def saver(archive: Archive, **more: Any) -> Any:
    from everturn.integrations.langgraph import ArchiveSaver

    return ArchiveSaver(archive, **more)


def joined(state: list[str], writes: Any) -> list[str]:
    return [*state, *(one for write in writes for one in write)]


def chat(checkpointer: Any, delta: bool = False) -> Any:
    """A graph whose messages grow by two at each turn."""
    from langgraph.channels.delta import DeltaChannel  # type: ignore[import-not-found, unused-ignore]
    from langgraph.graph import END, START, StateGraph  # type: ignore[import-not-found, unused-ignore]

    def plain(old: list[str], new: list[str]) -> list[str]:
        return [*old, *new]

    kind: Any = Annotated[list, DeltaChannel(joined, snapshot_frequency=3) if delta else plain]
    state = TypedDict("state", {"said": kind, "fixed": str})  # type: ignore[misc, unused-ignore] # noqa: UP013
    graph = StateGraph(state)
    graph.add_node("answer", lambda now: {"said": [f"answer {len(now['said'])}"]})
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=checkpointer)


def test_the_suite_of_langgraph_passes_in_all_81_points(archive: Archive, tmp_path: Path) -> None:
    from langgraph.checkpoint.conformance import (  # type: ignore[import-not-found, unused-ignore]
        checkpointer_test,
        validate,
    )

    numbers = count(1)

    @checkpointer_test(name="everturn")  # type: ignore[untyped-decorator, unused-ignore]
    async def fresh() -> Any:
        url = f"{archive.url}_{next(numbers)}" if "postgres" in archive.url else str(tmp_path / f"{next(numbers)}.db")
        with Archive(url, "process") as one:
            yield saver(one)

    report = asyncio.run(validate(fresh))
    assert [failure for result in report.results.values() for failure in result.failures] == []
    assert sum(result.tests_passed for result in report.results.values()) == 81


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("delta", [False, True])
def test_pruning_at_any_point_leaves_the_state_as_it_was(archive: Archive, durability: str, delta: bool) -> None:
    checkpointer = saver(archive)
    graph = chat(checkpointer, delta)
    for turn in range(5):
        graph.invoke({"said": [f"prompt {turn}"]}, THREAD, durability=durability)
        before = graph.get_state(THREAD).values
        checkpointer.prune(["t"])
        assert graph.get_state(THREAD).values == before
        assert len(before["said"]) == 2 * (turn + 1)


def test_a_run_is_deleted_but_not_what_a_later_one_is_rebuilt_from(archive: Archive) -> None:
    from uuid import uuid4

    checkpointer = saver(archive)
    graph = chat(checkpointer, delta=True)
    runs = [uuid4(), uuid4()]
    for run in runs:
        graph.invoke({"said": ["prompt"]}, {**THREAD, "run_id": run, "metadata": {"run_id": str(run)}})
    before = graph.get_state(THREAD).values
    checkpointer.delete_for_runs([str(runs[0])])
    assert graph.get_state(THREAD).values == before


def test_a_value_that_does_not_change_is_stored_once(archive: Archive) -> None:
    checkpointer = saver(archive)
    graph = chat(checkpointer)
    graph.invoke({"said": ["prompt"], "fixed": "x" * 10_000}, THREAD)
    for _ in range(5):
        graph.invoke({"said": ["prompt"]}, THREAD)
    sizes = archive.do(lambda store: store.driver.all('SELECT LENGTH("data") FROM "checkpoint_value"'))
    assert len(list(checkpointer.list(THREAD))) >= 18
    assert sum(size for (size,) in sizes if size > 9_000) < 2 * 11_000  # once by itself, once within the first input


def test_a_filter_is_never_part_of_a_statement(archive: Archive) -> None:
    checkpointer = saver(archive)
    chat(checkpointer).invoke({"said": ["prompt"]}, THREAD)
    for key in ("') OR 1=1 --", 'source" = "x', "source') UNION SELECT 1 --", "%s", "?", "\x00", "$.a"):
        assert list(checkpointer.list(THREAD, filter={key: "x"})) == []
    assert len(list(checkpointer.list(THREAD, filter={"source": "input"}))) == 1
    assert len(list(checkpointer.list(None, filter={"step": 1}))) == 1


def test_what_needs_pickle_is_refused(archive: Archive) -> None:
    from langgraph.checkpoint.serde.jsonplus import (  # type: ignore[import-not-found, unused-ignore]
        JsonPlusSerializer,
    )

    with pytest.raises(UsageError, match="pickle"):
        saver(archive, serde=JsonPlusSerializer(pickle_fallback=True))


def test_a_late_writer_is_told_that_others_went_on(archive: Archive) -> None:
    from langgraph.checkpoint.base import empty_checkpoint  # type: ignore[import-not-found, unused-ignore]

    checkpointer = saver(archive)
    first = checkpointer.put(THREAD, empty_checkpoint(), {}, {})
    checkpointer.put_writes(first, [("said", "by the one")], "task")
    checkpointer.put(first, empty_checkpoint(), {}, {})
    with pytest.raises(Conflict):
        checkpointer.put_writes(first, [("said", "by the other")], "task")
    assert checkpointer.get_tuple(first).pending_writes == [("task", "said", "by the one")]


def test_writes_may_come_before_their_checkpoint(archive: Archive) -> None:
    from langgraph.checkpoint.base import empty_checkpoint  # type: ignore[import-not-found, unused-ignore]

    checkpointer, checkpoint = saver(archive), empty_checkpoint()
    place = {"configurable": {**THREAD["configurable"], "checkpoint_id": checkpoint["id"]}}
    checkpointer.put_writes(place, [("said", "early")], "task")
    checkpointer.put(THREAD, checkpoint, {}, {})
    assert checkpointer.get_tuple(place).pending_writes == [("task", "said", "early")]
