"""Subagents: a loop as a tool of another loop. Each call is a session of its own, a child in the lineage.

    search = subagent(Loop(model, [fetch]), "search", "Search the web and report.")
    Loop(model, [search])

The session of a call is named after the call, so an attempt after a crash continues it: what the subagent did is done once,
by its own journal. Stopping the turn stops the subagent. Its calls that need a human are decided by its own `decide`;
without one, the caller is told which session waits, and the call may be made again after that.
"""

from __future__ import annotations

import queue
import threading
from dataclasses import replace

from everturn.errors import UsageError
from everturn.loop.journal import Journal, JournalAbout
from everturn.loop.loop import Loop, Outcome
from everturn.loop.tools import Tool, ToolContext, tool


def subagent(loop: Loop, name: str, description: str) -> Tool:
    """Make a tool of a loop. Its argument is the task, its result the answer."""

    @tool(name=name, description=description, policy="retry", idempotent=True)
    def run(task: str, context: ToolContext) -> str:
        parent = context.steps
        if not isinstance(parent, Journal) or getattr(parent, "store", None) is None:
            raise UsageError(f"subagent {name}: the loop that calls it has no archive to keep its session in")
        child = replace(loop, _cancelled=threading.Event(), _inbox=queue.SimpleQueue())
        session = f"{parent.session}/{context.idempotency_key[:12]}"
        about = JournalAbout(
            parent=parent.session, relation="subagent_of", workspace=parent.past.workspace, title=f"{name}: {task[:60]}"
        )
        with Journal.open(parent.store.url, session, about) as journal:
            context.stop.then(child.cancel)
            outcome = child.run(journal, task) if not journal.past.messages else child.resume(journal)
        return _report(outcome, session)

    return run


def _report(outcome: Outcome, session: str) -> str:
    if outcome.state in ("done", "truncated"):
        return outcome.text
    if outcome.state == "paused":
        calls = ", ".join(call.name for call in outcome.waiting)
        raise RuntimeError(f"the subagent waits for a human, in session {session}: {calls}")
    raise RuntimeError(
        f"the subagent did not finish ({outcome.state}), in session {session}: {outcome.text}".strip(": ")
    )
