"""What to do about each call of the last response that has no result: decided here, done by the loop.

A call that was never begun runs, or waits for approval. One in doubt follows its tool's policy. What a human decided
goes before either. A call that has its result is never run again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from everturn.loop import execution
from everturn.loop.execution import CallEnding, CallJob, policy_for
from everturn.loop.journal_state import IN_DOUBT, CallProgress
from everturn.loop.tools import NotDone, ReconciledResult, Tool, ToolContext, key_for


@dataclass
class SettlementPlan:
    """What is to be done, and what was found out on the way."""

    jobs: list[CallJob] = field(default_factory=list)
    endings: list[CallEnding] = field(default_factory=list)
    waits: dict[str, list[str]] = field(default_factory=dict)  # why → call ids that must now wait for a human
    told: list[Settlement] = field(default_factory=list)


@dataclass(frozen=True)
class Settlement:
    """What resuming did about one call."""

    call_id: str
    name: str
    was: str  # in doubt | not started
    did: str  # run | retry | reconciled | compensate | fail | wait | denied | settled | refused


class SettlementPlanner:
    """Plans for the calls of one session."""

    def __init__(self, session: str, tools: Mapping[str, Tool], interactive: bool) -> None:
        self._session, self._tools, self._interactive = session, tools, interactive

    def plan(self, calls: list[CallProgress]) -> SettlementPlan:
        """What to do about these."""
        plan = SettlementPlan()
        for call in calls:
            did = self._plan_call(plan, call)
            plan.told.append(Settlement(call.part.call_id, call.part.name, call.state, did))
        return plan

    def _plan_call(self, plan: SettlementPlan, call: CallProgress) -> str:
        if call.decision is not None:
            return self._plan_decided(plan, call)
        if call.waits:
            return "wait"
        if call.state == IN_DOUBT:
            return self._plan_in_doubt(plan, call)
        return self._plan_run(plan, call, approved=False)

    def _plan_decided(self, plan: SettlementPlan, call: CallProgress) -> str:
        assert call.decision is not None
        verdict, text = call.decision.verdict, call.decision.text
        if verdict == "approve":
            return self._plan_run(plan, call, approved=True)
        if verdict == "settle":
            _add_ending(plan, call, text, "settled", is_error=False)
            return "settled"
        if call.state == IN_DOUBT:
            _add_ending(plan, call, f"{execution.IN_DOUBT} {text}".strip(), "in_doubt")
        else:
            _add_ending(plan, call, execution.denied_result(text), "denied")
        return "denied"

    def _plan_in_doubt(self, plan: SettlementPlan, call: CallProgress) -> str:
        tool = self._tools.get(call.part.name)
        policy = policy_for(tool, call, self._interactive)
        if policy == "reconcile" and tool is not None:
            return self._reconcile(plan, call, tool)
        if policy == "retry":
            return self._plan_run(plan, call, approved=True)
        if policy == "compensate":
            return self._plan_run(plan, call, approved=True, purpose="compensate")
        return self._leave_in_doubt(plan, call, policy)

    def _reconcile(self, plan: SettlementPlan, call: CallProgress, tool: Tool) -> str:
        assert tool.reconcile is not None
        try:
            found = tool.reconcile(self._context(call), tool.checked(call.part.arguments))
        except Exception:  # what cannot be found out is not known
            found = None
        if isinstance(found, ReconciledResult):
            _add_ending(plan, call, found.text, "settled", found.is_error)
            return "reconciled"
        if isinstance(found, NotDone):
            return self._plan_run(plan, call, approved=True)
        return self._leave_in_doubt(plan, call, "ask" if self._interactive else "fail")

    def _leave_in_doubt(self, plan: SettlementPlan, call: CallProgress, policy: str) -> str:
        if policy == "ask":
            plan.waits.setdefault("in_doubt", []).append(call.part.call_id)
            return "wait"
        _add_ending(plan, call, execution.IN_DOUBT, "in_doubt")
        return "fail"

    def _plan_run(self, plan: SettlementPlan, call: CallProgress, approved: bool, purpose: str = "run") -> str:
        tool, part = self._tools.get(call.part.name), call.part
        if tool is None:
            _add_ending(plan, call, f"there is no tool {part.name!r}; it was not run", "unknown_tool")
            return "refused"
        try:
            arguments = tool.checked(part.arguments)
        except ValueError as failure:
            _add_ending(plan, call, f"invalid arguments: {failure}; it was not run", "invalid")
            return "refused"
        if not approved and _needs_approval(tool, part.arguments):
            plan.waits.setdefault("approval", []).append(part.call_id)
            return "wait"
        plan.jobs.append(CallJob(part, call.of, tool, arguments, self._context(call), purpose))
        return purpose if purpose != "run" else "retry" if call.intents else "run"

    def _context(self, call: CallProgress) -> ToolContext:
        call_id, attempt = call.part.call_id, len(call.intents) + 1
        return ToolContext(call_id, self._session, attempt > 1, key_for(self._session, call.of, call_id), attempt)


def _add_ending(plan: SettlementPlan, call: CallProgress, text: str, outcome: str, is_error: bool = True) -> None:
    plan.endings.append(CallEnding(call.part, call.of, text, is_error, outcome))


def _needs_approval(tool: Tool, arguments: Any) -> bool:
    try:
        return tool.needs_approval(arguments)
    except Exception:  # in doubt a human is asked
        return True
