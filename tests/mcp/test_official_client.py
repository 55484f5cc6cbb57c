"""The official client of the SDK, against our own server over pipes and the SDK's over HTTP: both say the same."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.capture.history import OTHER, SID
from tests.mcp.http_server import over_http
from tests.mcp.pipes import command, environment
from tests.recall.archives import Archive

pytestmark = [pytest.mark.needs("module:mcp"), pytest.mark.slow]

Talk = Callable[[Any], Awaitable[None]]


@pytest.fixture(params=["pipes", "http"])
def server(request: pytest.FixtureRequest, db: Path, archive: Archive) -> Iterator[Any]:
    """What the client connects to."""
    archive.take_in(*(archive.history.turn(f"request {n}.", f"reply {n}.") for n in range(1, 6)))
    archive.take_in(archive.history.turn("the zebra question", "reply", OTHER), sid=OTHER)
    with (_pipes if request.param == "pipes" else _http)(db) as made:
        yield made


@contextmanager
def _pipes(db: Path) -> Iterator[Any]:
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    program, *words = command(db)
    yield stdio_client(StdioServerParameters(command=program, args=words, env=environment()))


@contextmanager
def _http(db: Path) -> Iterator[Any]:
    with over_http(db) as (_, port):
        yield f"http://127.0.0.1:{port}/mcp"


def talk(server: Any, conversation: Talk, **options: Any) -> None:
    """Run a conversation of the client with a server."""
    import anyio
    from mcp import Client

    async def main() -> None:
        with anyio.fail_after(60):
            async with Client(server, **options) as client:
                await conversation(client)

    anyio.run(main)


def test_the_official_client_lists_and_calls_tools(server: Any) -> None:
    async def conversation(client: Any) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert set(tools) == {"conversation_recall", "list_sessions", "open_session", "restore_session", "why"}
        assert tools["open_session"].annotations.read_only_hint is True
        # The client checks the data against the schema of the output by itself.
        listed = await client.call_tool("list_sessions", {"limit": 1})
        assert listed.structured_content["total"] == 2
        found = await client.call_tool("conversation_recall", {"action": "search", "query": "zebra"})
        assert not found.is_error and "the zebra question" in found.content[0].text
        opened = await client.call_tool("open_session", {"session": SID, "start_turn": 2, "end_turn": 2})
        assert "request 2." in opened.content[0].text and "request 3." not in opened.content[0].text
        wrong = await client.call_tool("open_session", {"session": "zzzz"})
        assert wrong.is_error and "no session" in wrong.content[0].text

    talk(server, conversation)


def test_the_official_client_reads_resources_and_prompts(server: Any) -> None:
    async def conversation(client: Any) -> None:
        resources = (await client.list_resources()).resources
        assert [str(one.uri) for one in resources] == [f"everturn://session/{one}" for one in (OTHER, SID)]
        content = (await client.read_resource(str(resources[1].uri))).contents[0]
        assert "reply 5." in content.text
        assert len((await client.list_resource_templates()).resource_templates) == 2
        assert {one.name for one in (await client.list_prompts()).prompts} == {"recall", "handoff"}
        prompt = await client.get_prompt("handoff", {"session": SID})
        assert "reply 5." in prompt.messages[0].content.text

    talk(server, conversation)


def test_the_official_client_completes_ids_and_gets_errors_by_number(server: Any) -> None:
    from mcp.shared.exceptions import MCPError
    from mcp_types import PromptReference

    async def conversation(client: Any) -> None:
        reference = PromptReference(type="ref/prompt", name="handoff")
        done = await client.complete(reference, {"name": "session", "value": SID[:4]})
        assert done.completion.values == [SID]
        with pytest.raises(MCPError) as caught:
            await client.read_resource("everturn://session/zzzz")
        assert caught.value.code in (-32002, -32602)
        with pytest.raises(MCPError) as caught:
            await client.call_tool("no_such_tool", {})
        assert caught.value.code == -32602

    talk(server, conversation)


def test_a_client_of_the_handshake_versions_is_served(server: Any) -> None:
    async def conversation(client: Any) -> None:
        assert client.server_info.name == "everturn"
        assert (await client.call_tool("list_sessions", {})).structured_content["total"] == 2

    talk(server, conversation, mode="legacy")
