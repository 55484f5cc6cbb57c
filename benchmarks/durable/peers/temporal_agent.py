"""Temporal with its development server: the model and each tool are activities. ATTEMPTS is the most attempts at a tool."""

# mypy: ignore-errors

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

from effect import ANSWER, FOLDER, NAMES, effect, main
from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.common import RetryPolicy
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

SESSION = Path(FOLDER).name
ATTEMPTS = int(os.environ.get("ATTEMPTS", "0"))


@activity.defn
def ask(results: list[str]) -> list[str]:
    return [ANSWER] if results else list(NAMES)


@activity.defn
def call(name: str) -> str:
    return effect(name)


@workflow.defn
class Agent:
    @workflow.run
    async def run(self) -> list[str]:
        limit = timedelta(seconds=5)
        names = await workflow.execute_activity(ask, [], start_to_close_timeout=limit)
        attempts = RetryPolicy(maximum_attempts=ATTEMPTS)
        calls = [
            workflow.execute_activity(call, name, start_to_close_timeout=limit, retry_policy=attempts) for name in names
        ]
        results = await asyncio.gather(*calls, return_exceptions=True)
        told = [one if isinstance(one, str) else f"failed: {one.cause or one}" for one in results]
        await workflow.execute_activity(ask, told, start_to_close_timeout=limit)
        return told


async def work(begin: bool) -> list[str]:
    client = await Client.connect(os.environ["PEER_SERVER"])
    with ThreadPoolExecutor(5) as threads:
        worker = Worker(
            client, task_queue="peer", workflows=[Agent], activities=[ask, call], activity_executor=threads,
            workflow_runner=UnsandboxedWorkflowRunner(),
        )  # fmt: skip
        async with worker:
            if begin:
                await client.start_workflow(Agent.run, id=SESSION, task_queue="peer")
            return await client.get_workflow_handle(SESSION).result()


main(lambda: asyncio.run(work(True)), lambda: asyncio.run(work(False)))
