"""Pydantic AI with DBOS and SQLite. Each tool is a step, or with PLAIN=1 a plain function as in the first example of its guide."""

# mypy: ignore-errors

import asyncio
import os

from dbos import DBOS, SetWorkflowID
from effect import ANSWER, FOLDER, NAMES, PROMPT, effect, main
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

DBOS(config={"name": "peer", "system_database_url": f"sqlite:///{FOLDER}/dbos.db", "run_admin_server": False})


def results(messages: list) -> list[str]:
    return [part.content for one in messages for part in one.parts if isinstance(part, ToolReturnPart)]


def model(messages: list, info: object) -> ModelResponse:
    if results(messages):
        return ModelResponse([TextPart(ANSWER)])
    return ModelResponse([ToolCallPart("call", {"name": name}, f"call_{name}") for name in NAMES])


agent = Agent(FunctionModel(model), name="peer", capabilities=[DBOSDurability()])


async def call(name: str) -> str:
    """Do it."""
    return await asyncio.to_thread(effect, name)


agent.tool_plain(call if os.environ.get("PLAIN") else DBOS.step()(call))


@DBOS.workflow()
async def converse() -> list[str]:
    return results((await agent.run(PROMPT)).all_messages())


async def run() -> None:
    DBOS.launch()
    with SetWorkflowID("one"):
        await (await DBOS.start_workflow_async(converse)).get_result()


async def resume() -> list[str]:
    DBOS.launch()  # recovers what is pending
    return await (await DBOS.retrieve_workflow_async("one")).get_result()


main(lambda: asyncio.run(run()), lambda: asyncio.run(resume()))
