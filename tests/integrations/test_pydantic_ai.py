"""Conversations of Pydantic AI: what its own store in memory does, durable and for several writers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everturn.integrations.archive import Archive

pytestmark = pytest.mark.needs("module:pydantic_ai")


def conversations(archive: Archive) -> Any:
    from everturn.integrations.pydantic_ai import ArchiveConversations

    return ArchiveConversations(archive)


async def say(store: Any, prompt: str, name: str = "c", **more: Any) -> Any:
    from pydantic_ai import Agent  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai.conversation import Conversation  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai.models.test import TestModel  # type: ignore[import-not-found, unused-ignore]

    conversation = await store.load(name) or Conversation(conversation_id=name)
    result = await Agent(TestModel()).run(prompt, conversation=conversation)
    return await store.save(result, **more)


async def life(store: Any) -> list[Any]:
    """Everything a store is asked for, and what it answers."""
    from pydantic_ai.conversation_store import (  # type: ignore[import-not-found, unused-ignore]
        ConversationConflict,
    )

    seen: list[Any] = [await store.load("c"), len(await say(store, "one", scope="me"))]
    stale = await store.load("c")
    seen.append(len(await say(store, "two")))
    with pytest.raises(ConversationConflict):
        await store.save(stale)
    fork = await store.fork("c", at=2, new_conversation_id="f", scope="")
    seen.append(len(fork.messages))
    await say(store, "three", "f")
    current = await store.load("c")
    await store.branch("c", at=2, expected_revision=current.revision)
    seen += [len((await store.load("c")).messages), len((await store.load("f")).messages)]
    for scope in (None, "me", "", "none"):
        seen.append([record.conversation_id for record in await store.list_conversations(scope=scope)])
    seen.append(len(await store.list_conversations(limit=1)))
    seen.append([type(entry.message).__name__ for entry in await store.load_entries("f", limit=3)])
    await store.delete("c")
    seen += [await store.load("c"), len((await store.load("f")).messages)]
    return seen


def test_it_answers_as_the_store_in_memory_does(archive: Archive) -> None:
    from pydantic_ai.conversation_store import (  # type: ignore[import-not-found, unused-ignore]
        InMemoryConversationStore,
    )

    assert asyncio.run(life(conversations(archive))) == asyncio.run(life(InMemoryConversationStore()))


def test_entries_go_with_the_last_conversation_that_reaches_them(archive: Archive) -> None:
    store = conversations(archive)
    asyncio.run(life(store))
    assert archive.do(lambda kept: kept.last_item("conversation entries", "")) > 0
    asyncio.run(store.delete("f"))
    assert archive.do(lambda kept: kept.items("conversation entries", "")) == []


def test_a_long_history_is_read_whole_and_from_its_end(archive: Archive) -> None:
    from pydantic_ai.conversation import Conversation  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai.messages import ModelRequest  # type: ignore[import-not-found, unused-ignore]

    store = conversations(archive)
    for name in ("c", "d"):
        messages = [ModelRequest.user_text_prompt(f"{name}{n}") for n in range(700)]
        asyncio.run(store.save(Conversation(conversation_id=name, messages=messages)))
    texts = [message.parts[0].content for message in asyncio.run(store.load("c")).messages]
    assert texts == [f"c{n}" for n in range(700)]
    last = [message.parts[0].content for message in asyncio.run(store.load("d", limit=3)).messages]
    assert last == ["d697", "d698", "d699"]


def test_bytes_in_a_message_come_back(tmp_path: Path) -> None:
    from pydantic_ai import BinaryContent  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai.conversation import Conversation  # type: ignore[import-not-found, unused-ignore]
    from pydantic_ai.messages import ModelRequest, UserPromptPart  # type: ignore[import-not-found, unused-ignore]

    message = ModelRequest([UserPromptPart(["look", BinaryContent(b"\x00\xff\xfe", media_type="application/pdf")])])
    with Archive(tmp_path / "archive.db") as first:
        asyncio.run(conversations(first).save(Conversation(conversation_id="c", messages=[message])))
    with Archive(tmp_path / "archive.db") as second:
        loaded = asyncio.run(conversations(second).load("c"))
    assert loaded.messages == [message]


def test_an_unknown_entry_is_a_lookup_error(archive: Archive) -> None:
    with pytest.raises(LookupError):
        asyncio.run(conversations(archive).read_entry("none"))
