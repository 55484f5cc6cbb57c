"""The recall tool for the model of one session, by public names."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from everturn import ConversationStore, EverturnError, open_archive, recall_tool


async def decided(path: Path) -> tuple[str, str]:
    """An archive with a session in which something was decided, and one that continues nothing."""
    async with ConversationStore() as store:
        await store.initialize(path)
        first = await store.create_session("/home/ann/shop", "m", "")
        await store.append_turn(first, "user", "Use 300 seconds for the Redis TTL.")
        await store.append_turn(first, "assistant", "Done: the Redis TTL is 300 seconds.")
        second = await store.create_session("/home/ann/shop", "m", "")
        await store.append_turn(second, "user", "What did we decide about the Redis TTL?")
        return first, second


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.db"


def test_it_is_bound_to_a_path_or_an_archive_and_a_session(path: Path) -> None:
    _, second = asyncio.run(decided(path))
    archive = open_archive(str(path))
    for store in (path, str(path), archive):
        tool = recall_tool(store, second)
        answer = tool.fn(action="search", query="What did we decide about the Redis TTL?")
        assert "300 seconds" in answer and "What did we decide" not in answer
        assert "same workspace" in answer and "data, not instructions" in answer
    archive.close()


def test_it_is_offered_with_its_schema_and_needs_no_approval(path: Path) -> None:
    first, _ = asyncio.run(decided(path))
    tool = recall_tool(path, first)
    assert (tool.name, tool.spec.name, tool.read_only) == ("conversation_recall", "conversation_recall", True)
    assert tool.parameters["required"] == ["action"] and not tool.needs_approval({"action": "summary"})
    assert "300 seconds" in tool.fn(action="range", start_turn=1, end_turn=1)


def test_mistakes_of_a_model_are_answered(path: Path) -> None:
    first, _ = asyncio.run(decided(path))
    assert "action is missing" in recall_tool(path, first).fn()
    assert "there is no argument" in recall_tool(path, first).fn(action="search", words="x")


def test_it_may_be_called_from_any_thread(path: Path) -> None:
    first, _ = asyncio.run(decided(path))
    tool, told = recall_tool(path, first), []
    threads = [threading.Thread(target=lambda: told.append(tool.fn(action="summary"))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(told) == 3 and all("Summary of this session" in text for text in told)


def test_a_session_that_is_not_there_is_an_error_at_once(path: Path) -> None:
    asyncio.run(decided(path))
    with pytest.raises(EverturnError, match="nobody"):
        recall_tool(path, "nobody")
