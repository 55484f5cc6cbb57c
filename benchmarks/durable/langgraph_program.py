"""The same scene in LangGraph, run by the Python of an environment that has it; nothing of everturn is imported.

run LEDGER DB      three parallel calls; the process kills itself after the effect of b
resume LEDGER DB   the framework's own way to go on; prints the roles and results it ends with
put DB N           microseconds of CPU and of time for one more checkpoint of a conversation with N messages
"""

# mypy: ignore-errors

from __future__ import annotations

import json
import os
import signal
import sys
import time
from statistics import median
from typing import Any


def main() -> None:
    """One of the three."""
    work, *given = sys.argv[1:]
    {"run": _run, "resume": _resume, "put": _put}[work](*given)


def _agent(ledger: str, db: str, dies: str) -> Any:
    import sqlite3
    import warnings

    warnings.simplefilter("ignore")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.prebuilt import create_react_agent

    @tool
    def effect(name: str) -> str:
        """Do something that cannot be undone."""
        handle = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, f"{name}\n".encode())
        os.fsync(handle)
        os.close(handle)
        if name == dies:
            time.sleep(0.7)
            os.kill(os.getpid(), signal.SIGKILL)
        return f"done {name}"

    calls = [{"name": "effect", "args": {"name": name}, "id": f"call_{name}"} for name in "abc"]
    replies = [AIMessage("all is done")] if not dies else [AIMessage("", tool_calls=calls), AIMessage("all is done")]

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **more: Any) -> Any:
            return self

    connection = sqlite3.connect(db, check_same_thread=False)
    return create_react_agent(Model(messages=iter(replies)), [effect], checkpointer=SqliteSaver(connection))


_CONFIG: Any = {"configurable": {"thread_id": "one"}}


def _run(ledger: str, db: str) -> None:
    _agent(ledger, db, "b").invoke({"messages": [("user", "do it all")]}, _CONFIG, durability="sync")


def _resume(ledger: str, db: str) -> None:
    state = _agent(ledger, db, "").invoke(None, _CONFIG, durability="sync")
    print(json.dumps([[message.type, str(message.content)] for message in state["messages"]]))


def _put(db: str, many: str) -> None:
    import sqlite3

    from langchain_core.messages import HumanMessage
    from langgraph.checkpoint.base import empty_checkpoint
    from langgraph.checkpoint.sqlite import SqliteSaver

    connection = sqlite3.connect(db, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute("PRAGMA synchronous=FULL")
    messages = [HumanMessage("word " * 110, id=str(n)) for n in range(int(many))]
    spent, took = [], []
    for n in range(20):
        messages.append(HumanMessage("word " * 110, id=f"more{n}"))
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": list(messages)}
        checkpoint["channel_versions"] = {"messages": n + 1}
        cpu, begun = time.process_time(), time.perf_counter()
        config: Any = {"configurable": {"thread_id": "one", "checkpoint_ns": ""}}
        saver.put(config, checkpoint, {"source": "loop", "step": n, "parents": {}}, {})
        spent.append(time.process_time() - cpu)
        took.append(time.perf_counter() - begun)
    print(json.dumps({"cpu": 1e6 * median(spent), "time": 1e6 * median(took)}))


if __name__ == "__main__":
    main()
