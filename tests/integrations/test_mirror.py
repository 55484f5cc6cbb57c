"""Conversations of frameworks are sessions: listed, found, shown, masked, exported and forgotten like any other."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from everturn.integrations.archive import Archive
from everturn.integrations.mirror import Mirror, item_turns
from everturn.model.archive import FrameworkData
from everturn.store.sql_store import SqlStore
from tests import command_line

ROOT = Path(__file__).parents[2]
SECRET = "sk-ant-api03-" + "Zq7wE" * 19
ITEMS = [
    {"role": "user", "content": f"Where is the marmalade? The key is {SECRET}"},
    {"type": "reasoning", "id": "r", "summary": [{"type": "summary_text", "text": "a pantry perhaps"}]},
    {"role": "assistant", "content": [{"type": "output_text", "text": "Let me look."}]},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"place": "pantry"}'},
    {"type": "function_call", "call_id": "c2", "name": "look", "arguments": '{"place": "cellar"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "jam only"},
    {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "nine jars"}]},
    {"role": "assistant", "content": "In the cellar."},
]


def everturn(url: Path, *words: str) -> str:
    """What a command prints."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(url.parent),
        "PYTHONPATH": str(ROOT / "src"),
        "EVERTURN_DB": str(url),
    }
    env |= {"EVERTURN_HOME": str(url.parent / "home"), "NO_COLOR": "1", "COLUMNS": "200"}
    return command_line.run(words, env, cwd=url.parent).stdout.decode()


def add(url: Path, items: list[Any]) -> None:
    def work(store: SqlStore) -> None:
        with store.write():
            store.add_items("session items", "chat-1", [("", b"{}") for _ in items], 1)
            Mirror("openai-agents", clock=lambda: 1_800_000_000_000).add(
                store, "chat-1", item_turns(items), FrameworkData("session items", "chat-1")
            )

    with Archive(url) as archive:
        archive.do(work)


def test_a_session_of_a_framework_is_one_like_any_other(tmp_path: Path) -> None:
    url = tmp_path / "archive.db"
    add(url, ITEMS[:2])
    add(url, ITEMS[2:])
    assert "chat-1" in everturn(url, "sessions")
    found = everturn(url, "search", "nine jars")
    assert "chat-1" in found
    shown = everturn(url, "show", "chat-1")
    assert "In the cellar." in shown and "pantry" in shown and SECRET not in shown
    assert "In the cellar." in everturn(url, "export", "chat-1", "--as", "markdown")


def test_forgetting_the_session_erases_what_the_framework_kept(tmp_path: Path) -> None:
    url = tmp_path / "archive.db"
    add(url, ITEMS)
    assert "erased 1 sessions" in everturn(url, "forget", "chat-1", "--yes")
    with Archive(url) as archive:
        assert archive.do(lambda store: store.items("session items", "chat-1")) == []
    add(url, ITEMS[:1])  # a program that still runs does not bring it back
    assert "chat-1" not in everturn(url, "sessions")


@pytest.mark.needs("module:agents")
def test_openai_agents(tmp_path: Path) -> None:
    from everturn.integrations.openai_agents import ArchiveSession

    url = tmp_path / "archive.db"
    session = ArchiveSession("chat-1", url)
    asyncio.run(session.add_items(ITEMS))
    assert asyncio.run(session.get_items()) == ITEMS
    assert "chat-1" in everturn(url, "search", "nine jars")
    asyncio.run(session.clear_session())
    session.close()
    assert "chat-1" not in everturn(url, "sessions")


@pytest.mark.needs("module:langgraph")
def test_langgraph(tmp_path: Path) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage  # type: ignore[import-not-found, unused-ignore]  # fmt: skip
    from langgraph.graph import END, START, MessagesState, StateGraph  # type: ignore[import-not-found, unused-ignore]

    from everturn.integrations.langgraph import ArchiveSaver

    def work(state: Any) -> Any:
        call = {"id": "c1", "name": "look", "args": {"place": "cellar"}}
        last = state["messages"][-1].content
        return {
            "messages": [AIMessage("", tool_calls=[call]), ToolMessage("nine jars", tool_call_id="c1"), AIMessage(last)]
        }

    url = tmp_path / "archive.db"
    graph = StateGraph(MessagesState)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    thread = {"configurable": {"thread_id": "7"}}
    with Archive(url) as archive:
        app = graph.compile(checkpointer=ArchiveSaver(archive))
        app.invoke({"messages": [HumanMessage("Where is the marmalade?")]}, thread)
        app.invoke({"messages": [HumanMessage("And the honey?")]}, thread)
    shown = everturn(url, "show", "7@langgraph")
    assert shown.count("Where is the marmalade?") >= 1 and "And the honey?" in shown
    assert "7@langgr" in everturn(url, "search", "nine jars")
    everturn(url, "forget", "7@langgraph", "--yes")
    with Archive(url) as archive:
        assert ArchiveSaver(archive).get_tuple(thread) is None


@pytest.mark.needs("module:pydantic_ai")
def test_pydantic_ai(tmp_path: Path) -> None:
    from pydantic_ai import Agent  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai.conversation import Conversation  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai.models.test import TestModel  # type: ignore[import-not-found, unused-ignore]

    from everturn.integrations.pydantic_ai import ArchiveConversations

    url = tmp_path / "archive.db"
    agent = Agent(TestModel(custom_output_text="In the cellar."))

    @agent.tool_plain  # type: ignore[untyped-decorator, unused-ignore]
    def look() -> str:
        return "nine jars"

    async def work() -> None:
        with Archive(url) as archive:
            store = ArchiveConversations(archive)
            await store.save(
                await agent.run("Where is the marmalade?", conversation=Conversation(conversation_id="7")), scope="me"
            )

    asyncio.run(work())
    shown = everturn(url, "show", "7@pydantic-ai")
    assert "Where is the marmalade?" in shown and "look" in shown and "In the cellar." in shown
    assert "7@pydant" in everturn(url, "search", "nine jars")
    everturn(url, "forget", "7@pydantic-ai", "--yes")
    with Archive(url) as archive:
        assert asyncio.run(ArchiveConversations(archive).load("7")) is None


def test_mcp(tmp_path: Path) -> None:
    from mcp_types import JSONRPCResponse

    from everturn.integrations.mcp_events import ArchiveEvents

    url = tmp_path / "archive.db"
    result = {"content": [{"type": "text", "text": "nine jars in the cellar"}]}
    with Archive(url) as archive:
        events = ArchiveEvents(archive, "client 1")
        asyncio.run(events.store_event("1", JSONRPCResponse(jsonrpc="2.0", id=1, result=result)))
    assert "client 1" in everturn(url, "search", "nine jars")
    everturn(url, "forget", "client 1@mcp", "--yes")
    with Archive(url) as archive:
        assert archive.do(lambda store: store.items("events", "client 1/1")) == []
