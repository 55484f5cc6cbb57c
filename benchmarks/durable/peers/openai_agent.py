"""OpenAI Agents with its SQLite session; the program is started again with the same session."""

# mypy: ignore-errors

import asyncio
import json

from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call
from effect import ANSWER, FOLDER, NAMES, PROMPT, effect, main

set_tracing_disabled(True)


@function_tool
async def call(name: str) -> str:
    """Do it."""
    return await asyncio.to_thread(effect, name)


async def run() -> list[str]:
    session = SQLiteSession("one", f"{FOLDER}/session.db")
    calls = [function_call("call", {"name": name}, call_id=f"call_{name}") for name in NAMES]
    known = [item for item in await session.get_items() if item.get("type") == "function_call_output"]
    model = ScriptedModel([[assistant_message(ANSWER)]] if known else [calls, [assistant_message(ANSWER)]])
    await Runner.run(Agent(name="peer", model=model, tools=[call]), PROMPT, session=session)
    items = await session.get_items()
    return [str(item["output"]) for item in items if item.get("type") == "function_call_output"]


main(lambda: asyncio.run(run()), lambda: json.loads(json.dumps(asyncio.run(run()))))
