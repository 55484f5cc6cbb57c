"""How tools are used and what it costs: the questions of `everturn paths`, `inspect`, `struggles` and `stats`."""

from __future__ import annotations

from typing import Any

from everturn.analyse.inspect import Inspection, inspect
from everturn.analyse.money import Cost
from everturn.analyse.paths import Found, paths
from everturn.analyse.stats import KEYS, PERIODS, Period, Used, stats
from everturn.analyse.struggles import Kind, kinds, struggles
from everturn.errors import NothingFound
from everturn.web.analysis import prices, scope_of
from everturn.web.api.operations import Operation, Parameter, listed
from everturn.web.asking import Asked
from everturn.web.schemas import Items


class PathsAnswer(Items[Found]):
    """Paths, and how much they were found in."""

    sessions: int
    turns: int
    calls: int
    sampled: int


class StatsAnswer(Items[Period]):
    """What was done and what it cost, oldest first."""

    total: Period
    subagents: Cost
    inherited_tokens: int
    tools: list[Used]
    errors: list[Used]
    prices_as_of: str


def _paths(asked: Asked) -> dict[str, Any]:
    found = paths(asked.store, scope_of(asked), _top(asked), asked.choice("all", ("yes", "no")) == "yes")
    about = {name: getattr(found, name) for name in ("sessions", "turns", "calls", "sampled")}
    return listed("paths", found.items, **about)


def _inspect(asked: Asked) -> dict[str, Any]:
    tool = asked.word("tool")
    found = inspect(asked.store, scope_of(asked), tool) if tool else None
    if found is None:
        raise NothingFound(f"no call of a tool {tool[:80]!r}; /api/paths names those there are")
    return listed("inspect", [found])


def _struggles(asked: Asked) -> dict[str, Any]:
    return listed("struggles", kinds(asked.store, struggles(asked.store, scope_of(asked)))[: _top(asked)])


def _stats(asked: Asked) -> dict[str, Any]:
    period, by = asked.choice("period", PERIODS) or "month", asked.choice("by", KEYS)
    found = stats(asked.store, scope_of(asked), prices(asked), period, by)
    if not found.total.sessions:
        raise NothingFound("there is nothing to count; take away a filter")
    more = {name: getattr(found, name) for name in found.__struct_fields__ if name != "items"}
    return listed("stats", found.items, **more)


def _top(asked: Asked) -> int:
    return asked.number("top", 20, 1, 200)


_WHERE = (
    Parameter("agent", "Only of this agent."),
    Parameter("workspace", "Only where the working folder holds this."),
    Parameter("since", "Only sessions active since then: 2026-01-31, 7d, yesterday."),
    Parameter("subagents", "own: leave out what subagents did."),
)
_TOP = Parameter("top", "How many, at most 200.", "integer")

OPERATIONS = (
    Operation(
        "/api/paths", "Which tools follow each other more often than chance explains.", _paths, PathsAnswer,
        (*_WHERE, Parameter("all", "yes: also those that chance explains."), _TOP), counts=True,
    ),
    Operation(
        "/api/inspect", "One tool: before, after, beside it, how it fails.", _inspect, Items[Inspection],
        (Parameter("tool", "Its name, with * for any ending.", required=True), *_WHERE), counts=True,
    ),
    Operation(
        "/api/struggles", "Runs of similar failures, and what ended them.", _struggles, Items[Kind], (*_WHERE, _TOP),
        counts=True,
    ),
    Operation(
        "/api/stats", "What was done and what it cost.", _stats, StatsAnswer,
        (*_WHERE, Parameter("period", "day, week or month."), Parameter("by", "agent, model or workspace.")),
        counts=True,
    ),
)  # fmt: skip
