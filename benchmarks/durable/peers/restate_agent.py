"""Restate with its server: the model and each tool are journaled steps (`ctx.run`) of a workflow."""

# mypy: ignore-errors

import asyncio
import json
import os
import threading
import time
import urllib.request

import hypercorn.asyncio
import hypercorn.config
import restate
from effect import ANSWER, NAMES, effect, main

INGRESS, ADMIN, PORT = os.environ["PEER_INGRESS"], os.environ["PEER_ADMIN"], os.environ["PEER_PORT"]
agent = restate.Workflow("peer")


async def ask(results: list[str]) -> list[str]:
    return [ANSWER] if results else list(NAMES)


async def call(name: str) -> str:
    return await asyncio.to_thread(effect, name)


@agent.main()
async def run(ctx: restate.WorkflowContext) -> list[str]:
    names = await ctx.run_typed("ask", ask, results=[])
    calls = [ctx.run_typed(f"call {name}", call, name=name) for name in names]
    await restate.gather(*calls)
    results = [await one for one in calls]
    await ctx.run_typed("answer", ask, results=results)
    return results


def post(url: str, body: object, method: str = "POST") -> object:
    data, kind = (None, {}) if body is None else (json.dumps(body).encode(), {"Content-Type": "application/json"})
    request = urllib.request.Request(url, data, kind, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read() or b"null")


def serve() -> None:
    config = hypercorn.config.Config()
    config.bind = [f"127.0.0.1:{PORT}"]
    config.h2_max_concurrent_streams = 2_147_483_647
    application = restate.app([agent])
    asyncio.run(hypercorn.asyncio.serve(application, config, shutdown_trigger=asyncio.Event().wait))


def listening() -> None:
    threading.Thread(target=serve, daemon=True).start()
    time.sleep(1)


def begin() -> None:
    listening()
    post(f"{ADMIN}/deployments", {"uri": f"http://127.0.0.1:{PORT}"})
    post(f"{INGRESS}/peer/one/run", None)


def resume() -> list[str]:
    listening()
    return post(f"{INGRESS}/restate/workflow/peer/one/attach", None, "GET")


main(begin, resume)
