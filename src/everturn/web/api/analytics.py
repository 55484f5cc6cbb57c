"""Tool use and cost: the operations behind `everturn paths`, `inspect`, `struggles` and `stats`."""

from __future__ import annotations

from typing import Any

from everturn.analytics.cost import Cost
from everturn.analytics.inspect import Inspection, inspect_tools
from everturn.analytics.paths import ToolPathFinding, find_paths
from everturn.analytics.stats import KEYS, PERIODS, Period, TakenBackTotal, UseTotal, WorkTotal, count_stats
from everturn.analytics.struggles import Kind, find_struggles, group_kinds
from everturn.errors import NothingFound
from everturn.text.folders import FOLDER_RULE
from everturn.web.analytics_scope import load_prices, scope_of
from everturn.web.api.operation import Operation, Parameter, list_frame
from everturn.web.request import WebRequest
from everturn.web.schemas import ItemsJson


class PathsJson(ItemsJson[ToolPathFinding]):
    """Paths, and how much they were found in."""

    sessions: int
    turns: int
    calls: int
    sampled: int


class StatsJson(ItemsJson[Period]):
    """What was done and what it cost, oldest first."""

    total: Period
    subagents: Cost
    inherited_tokens: int
    tools: list[UseTotal]
    errors: list[UseTotal]
    prices_as_of: str
    own: WorkTotal
    inclusive: WorkTotal
    reported: WorkTotal
    taken_back: TakenBackTotal


def _paths_answer(request: WebRequest) -> dict[str, Any]:
    found = find_paths(
        request.store, scope_of(request), _top_number(request), request.choice("all", ("yes", "no")) == "yes"
    )
    about = {name: getattr(found, name) for name in ("sessions", "turns", "calls", "sampled")}
    return list_frame("paths", found.items, **about)


def _inspect_answer(request: WebRequest) -> dict[str, Any]:
    tool = request.word("tool")
    found = inspect_tools(request.store, scope_of(request), tool) if tool else None
    if found is None:
        raise NothingFound(f"no call of a tool {tool[:80]!r}; /api/paths names those there are")
    return list_frame("inspect", [found])


def _struggles_answer(request: WebRequest) -> dict[str, Any]:
    return list_frame(
        "struggles",
        group_kinds(request.store, find_struggles(request.store, scope_of(request)))[: _top_number(request)],
    )


def _stats_answer(request: WebRequest) -> dict[str, Any]:
    period, by = request.choice("period", PERIODS) or "month", request.choice("by", KEYS)
    found = count_stats(request.store, scope_of(request), load_prices(request), period, by)
    if not found.items:
        raise NothingFound("there is nothing to count; remove a filter")
    more = {name: getattr(found, name) for name in found.__struct_fields__ if name != "items"}
    return list_frame("stats", found.items, **more)


def _top_number(request: WebRequest) -> int:
    return request.number("top", 20, 1, 200)


_SCOPE_PARAMETERS = (
    Parameter("agent", "Only of this agent."),
    Parameter("workspace", FOLDER_RULE),
    Parameter("since", "Only sessions active since then: 2026-01-31, 7d, yesterday."),
    Parameter("subagents", "own: leave out what subagents did."),
)
_TOP_PARAMETER = Parameter("top", "How many, at most 200.", "integer")

ANALYTICS_OPERATIONS = (
    Operation(
        "/api/paths", "Which tools follow each other more often than chance explains.", _paths_answer, PathsJson,
        (*_SCOPE_PARAMETERS, Parameter("all", "yes: also those that chance explains."), _TOP_PARAMETER), counts=True,
    ),
    Operation(
        "/api/inspect", "One tool: before, after, beside it, how it fails.", _inspect_answer, ItemsJson[Inspection],
        (Parameter("tool", "Its name, with * for any ending.", required=True), *_SCOPE_PARAMETERS), counts=True,
    ),
    Operation(
        "/api/struggles", "Runs of similar failures, and what ended them.", _struggles_answer, ItemsJson[Kind], (*_SCOPE_PARAMETERS, _TOP_PARAMETER),
        counts=True,
    ),
    Operation(
        "/api/stats", "What was done and what it cost.", _stats_answer, StatsJson,
        (*_SCOPE_PARAMETERS, Parameter("period", "day, week or month."), Parameter("by", "agent, model or workspace.")),
        counts=True,
    ),
)  # fmt: skip
