"""Run in an environment with agent frameworks: sessions of one of them against a server that answers by dice.

PROGRAM ROOT FRAMEWORK WIRE REQUESTS. Prints how many sessions ended with an error of the framework, and the first of these.
"""

# mypy: ignore-errors

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import random
import sys
from collections.abc import Awaitable, Callable
from typing import Any

_numbers = itertools.count(1)
_TURNS = 3
Session = Callable[[random.Random], Awaitable[int]]


def main() -> None:
    """Run sessions until so many requests were sent."""
    root, framework, wire, wanted = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    os.environ |= {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": root}
    session = _FRAMEWORKS[framework](root, wire)
    failures: list[str] = []
    asyncio.run(_sessions(session, wanted, random.Random(f"{framework} {wire}"), failures))
    print(json.dumps({"failed": len(failures), "first": failures[:1]}))


async def _sessions(session: Session, wanted: int, dice: random.Random, failures: list[str]) -> None:
    asked = 0
    while asked < wanted and len(failures) < wanted:
        try:
            asked += await session(dice)
        except Exception as failure:  # a refusal of the model is an error in some frameworks
            asked += 1
            failures.append(f"{type(failure).__name__}: {failure}"[:200])


def _data(kind: str) -> bytes:
    """Content that is found again by its beginning."""
    return b"ATTACH%06d" % next(_numbers) + (b"%PDF-1.4" if kind == "file" else b"\x89PNG\r\n\x1a\n")


def _encoded(kind: str) -> str:
    return base64.b64encode(_data(kind)).decode()


def _attached(dice: random.Random) -> list[str]:
    return [kind for kind in ("image", "file") if dice.random() < 0.35]


def _question() -> str:
    return f"Question {next(_numbers)}"


# LangGraph --------------------------------------------------------------------------------------------------------------
def _langgraph(root: str, wire: str) -> Session:
    from langchain.agents import create_agent
    from langchain_anthropic import ChatAnthropic
    from langchain_core.messages import HumanMessage
    from langchain_openai import ChatOpenAI

    def read(path: str) -> str:
        """Read."""
        return "found"

    def model(dice: random.Random) -> Any:
        if wire == "messages":
            more = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if dice.random() < 0.5 else {}
            return ChatAnthropic(model="claude-m", base_url=root, api_key="k", max_tokens=4096, max_retries=0, **more)
        is_new = wire == "responses"
        return ChatOpenAI(model="m", base_url=f"{root}/v1", api_key="k", max_retries=0, use_responses_api=is_new)

    async def session(dice: random.Random) -> int:
        agent, messages, asked = create_agent(model(dice), [read]), [], 0
        for _ in range(_TURNS):
            state = {"messages": [*messages, HumanMessage(_langchain_blocks(dice))]}
            if dice.random() < 0.5:
                async for mode, part in agent.astream(state, stream_mode=["values", "messages"]):
                    state = part if mode == "values" else state
            else:
                state = await agent.ainvoke(state)
            asked += sum(one.type == "ai" for one in state["messages"][len(messages) :])
            messages = state["messages"]
        return asked

    return session


def _langchain_blocks(dice: random.Random) -> list[Any]:
    content: list[Any] = [{"type": "text", "text": _question()}]
    for kind in _attached(dice):
        media = "image/png" if kind == "image" else "application/pdf"
        block = {"type": kind, "base64": _encoded(kind), "mime_type": media}
        content.append(block | ({"filename": "a.pdf"} if kind == "file" else {}))
    return content


# Pydantic AI ------------------------------------------------------------------------------------------------------------
def _pydantic_ai(root: str, wire: str) -> Session:
    from pydantic_ai import Agent, BinaryContent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    if wire == "messages":
        model: Any = AnthropicModel("claude-m", provider=AnthropicProvider(api_key="k", base_url=root))
    else:
        kind = OpenAIChatModel if wire == "chat" else OpenAIResponsesModel
        model = kind("m", provider=OpenAIProvider(api_key="k", base_url=f"{root}/v1"))
    agent = Agent(model)

    @agent.tool_plain
    def read(path: str) -> Any:
        """Read."""
        return "found"

    async def session(dice: random.Random) -> int:
        messages: list[Any] = []
        asked = 0
        settings = {"anthropic_thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4096}
        chosen = settings if wire == "messages" and dice.random() < 0.5 else {}
        for _ in range(_TURNS):
            prompt: list[Any] = [_question()]
            for one in _attached(dice):
                media = "image/png" if one == "image" else "application/pdf"
                prompt.append(BinaryContent(_data(one), media_type=media))
            if dice.random() < 0.5:
                async with agent.run_stream(prompt, message_history=messages, model_settings=chosen) as result:
                    await result.get_output()
            else:
                result = await agent.run(prompt, message_history=messages, model_settings=chosen)
            asked += sum(one.kind == "response" for one in result.all_messages()[len(messages) :])
            messages = result.all_messages()
        return asked

    return session


# OpenAI Agents ----------------------------------------------------------------------------------------------------------
def _openai_agents(root: str, wire: str) -> Session:
    from agents import (
        Agent,
        OpenAIChatCompletionsModel,
        OpenAIResponsesModel,
        Runner,
        function_tool,
        set_tracing_disabled,
    )
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    client = AsyncOpenAI(api_key="k", base_url=f"{root}/v1", max_retries=0)
    model = (OpenAIChatCompletionsModel if wire == "chat" else OpenAIResponsesModel)("m", client)

    @function_tool
    def read(path: str) -> str:
        """Read."""
        return "found"

    agent = Agent(name="helper", model=model, tools=[read])

    async def session(dice: random.Random) -> int:
        items: list[Any] = []
        asked = 0
        for _ in range(_TURNS):
            content: list[Any] = [{"type": "input_text", "text": _question()}]
            for kind in _attached(dice):
                if kind == "image":
                    url = f"data:image/png;base64,{_encoded(kind)}"
                    content.append({"type": "input_image", "detail": "auto", "image_url": url})
                else:
                    url = f"data:application/pdf;base64,{_encoded(kind)}"
                    content.append({"type": "input_file", "filename": "a.pdf", "file_data": url})
            given = [*items, {"role": "user", "content": content}]
            if dice.random() < 0.5:
                result: Any = Runner.run_streamed(agent, given)
                async for _event in result.stream_events():
                    pass
            else:
                result = await Runner.run(agent, given)
            asked += len(result.raw_responses)
            items = result.to_input_list()
        return asked

    return session


# Claude Agent SDK -------------------------------------------------------------------------------------------------------
def _claude_agent_sdk(root: str, wire: str) -> Session:
    from claude_agent_sdk import AssistantMessage, ClaudeAgentOptions, ClaudeSDKClient, create_sdk_mcp_server, tool

    @tool("read", "Read.", {"path": str})
    async def read(given: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "found"}]}

    server = create_sdk_mcp_server("files", tools=[read])
    options = ClaudeAgentOptions(
        mcp_servers={"files": server}, allowed_tools=["mcp__files__read"], permission_mode="default", setting_sources=[],
        model="claude-sonnet-4-5", env={"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1"},
    )  # fmt: skip

    def prompt(dice: random.Random) -> dict[str, Any]:
        content: list[Any] = [{"type": "text", "text": _question()}]
        for kind in _attached(dice):
            media = "image/png" if kind == "image" else "application/pdf"
            source = {"type": "base64", "media_type": media, "data": _encoded(kind)}
            content.append({"type": "image" if kind == "image" else "document", "source": source})
        return {"type": "user", "message": {"role": "user", "content": content}, "parent_tool_use_id": None}

    async def session(dice: random.Random) -> int:
        asked = 0
        async with ClaudeSDKClient(options) as client:
            for _ in range(_TURNS):

                async def one() -> Any:
                    yield prompt(dice)

                await client.query(one())
                async for message in client.receive_response():
                    asked += isinstance(message, AssistantMessage)
        return max(asked, 1)

    return session


_FRAMEWORKS: dict[str, Callable[[str, str], Session]] = {
    "langgraph": _langgraph,
    "pydantic_ai": _pydantic_ai,
    "openai_agents": _openai_agents,
    "claude_agent_sdk": _claude_agent_sdk,
}

if __name__ == "__main__":
    main()
