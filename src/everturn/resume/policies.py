"""What becomes of a call that was begun and whose result was never written.

    retry        run it again, with the same idempotency key
    reconcile    ask the tool's own `reconcile` what happened: done (and its result), not done (then it runs), not known
    compensate   undo it by the tool's own `compensate`, and say so
    ask          wait for a human: approve (run again), deny (leave it), settle (say what it gave)
    fail         tell the model that nobody knows

Unless a tool says otherwise: one that can reconcile does; one that only reads or is idempotent is tried again; all others
are asked about, or fail where there is nobody to ask. A tool that is not there any more is never run.
"""

from __future__ import annotations

from everturn.resume.past import CallProgress
from everturn.resume.tools import Tool

IN_DOUBT = (
    "in doubt: this call was started, the process then ended, and its outcome is unknown. It may or may not have taken "
    "effect, wholly or in part. It was not repeated. Find out what happened before doing it again."
)
COMPENSATED = (
    "in doubt, then undone: this call was started, the process then ended, and its outcome is unknown. "
    "What it may have done was undone."
)
NOT_STARTED = "not started: the human stopped the turn before this call was started. It had no effect."
INTERRUPTED = (
    "interrupted: the human stopped the turn while this call was running, and its outcome is unknown. "
    "It may or may not have taken effect."
)


def policy_for(tool: Tool | None, call: CallProgress, interactive: bool) -> str:
    """What to do with a call in doubt."""
    last = "ask" if interactive else "fail"
    if tool is None:
        return last
    if call.intents and call.intents[-1].purpose == "compensate":
        return "compensate" if tool.compensate else last
    wanted = tool.policy or _policy_from_hints(tool)
    if wanted == "reconcile" and tool.reconcile is None:
        wanted = ""
    if wanted == "compensate" and tool.compensate is None:
        wanted = ""
    return last if wanted in ("", "ask") else wanted


def timed_out_result(seconds: float) -> str:
    """What the model is told about a call that took too long."""
    return (
        f"timed out after {seconds:g} s: the call was started and did not finish in time. "
        "It may or may not have taken effect, or may still do so."
    )


def denied_result(text: str) -> str:
    """What the model is told about a call that a human did not allow."""
    return f"denied: the human did not allow this call; it was not run. {text}".strip()


def _policy_from_hints(tool: Tool) -> str:
    if tool.reconcile is not None:
        return "reconcile"
    return "retry" if tool.read_only or tool.idempotent else ""
