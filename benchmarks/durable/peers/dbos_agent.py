"""DBOS with SQLite: the model and each tool are steps of a workflow."""

# mypy: ignore-errors

import asyncio

from dbos import DBOS, SetWorkflowID
from effect import ANSWER, FOLDER, NAMES, effect, main

DBOS(config={"name": "peer", "system_database_url": f"sqlite:///{FOLDER}/dbos.db", "run_admin_server": False})


@DBOS.step()
async def ask(results: list[str]) -> list[str]:
    return [ANSWER] if results else list(NAMES)


@DBOS.step()
async def call(name: str) -> str:
    return await asyncio.to_thread(effect, name)


@DBOS.workflow()
async def agent() -> list[str]:
    results = await asyncio.gather(*[call(name) for name in await ask([])])
    await ask(results)
    return results


async def run() -> None:
    DBOS.launch()
    with SetWorkflowID("one"):
        await (await DBOS.start_workflow_async(agent)).get_result()


async def resume() -> list[str]:
    DBOS.launch()  # recovers what is pending
    return await (await DBOS.retrieve_workflow_async("one")).get_result()


main(lambda: asyncio.run(run()), lambda: asyncio.run(resume()))
