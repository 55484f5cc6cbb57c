"""LangGraph: its prebuilt agent with checkpoints in SQLite.

Beside `run` and `resume`: put N DB prints the microseconds of CPU and of time for one more checkpoint of a conversation with N messages.
"""

# mypy: ignore-errors

import json
import sqlite3
import sys
import time
import warnings
from statistics import median
from typing import Any

from effect import ANSWER, FOLDER, NAMES, PROMPT, effect, main
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.prebuilt import create_react_agent

warnings.simplefilter("ignore")
CONFIG: Any = {"configurable": {"thread_id": "one"}}


class Model(GenericFakeChatModel):
    """A script."""

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self


def agent(*replies: AIMessage) -> Any:
    connection = sqlite3.connect(f"{FOLDER}/checkpoints.db", check_same_thread=False)
    return create_react_agent(Model(messages=iter(replies)), [tool(effect)], checkpointer=SqliteSaver(connection))


def run() -> None:
    calls = [{"name": "effect", "args": {"name": name}, "id": f"call_{name}"} for name in NAMES]
    app = agent(AIMessage("", tool_calls=calls), AIMessage(ANSWER))
    app.invoke({"messages": [("user", PROMPT)]}, CONFIG, durability="sync")


def resume() -> list[str]:
    state = agent(AIMessage(ANSWER)).invoke(None, CONFIG, durability="sync")
    return [str(message.content) for message in state["messages"] if message.type == "tool"]


def put(many: int, db: str) -> None:
    connection = sqlite3.connect(db, check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute("PRAGMA synchronous=FULL")
    messages = [HumanMessage("word " * 110, id=str(n)) for n in range(many)]
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


if sys.argv[1] == "put":
    put(int(sys.argv[2]), sys.argv[3])
else:
    main(run, resume)
