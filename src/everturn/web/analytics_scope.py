"""What the pages about tool use and cost have in common: which sessions, counts that are up to date, answers held a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from everturn.analytics import cost, counts
from everturn.analytics.cost import Prices
from everturn.analytics.counts import AnalyticsScope
from everturn.store.contract import SessionFilter
from everturn.web.request import WebRequest
from everturn.web.site import Step, WebJob

T = TypeVar("T")

COUNT = "count"
_MOST_UNCOUNTED = 200  # sessions to be counted that nobody should have to wait for
FILTERS = ("agent", "workspace", "since", "subagents")


def scope_of(asked: WebRequest) -> AnalyticsScope:
    """The sessions that are meant. Raises Usage."""
    agent, workspace, since = asked.word("agent"), asked.word("workspace"), asked.when("since")
    wanted = SessionFilter(agent=agent, workspace=workspace, since=since)
    return AnalyticsScope(
        wanted if agent or workspace or since is not None else None, None, not is_without_subagents(asked)
    )


def is_without_subagents(asked: WebRequest) -> bool:
    """Whether what subagents did is left out."""
    return asked.choice("subagents", ("own", "inclusive")) == "own"


def filters_of(asked: WebRequest) -> dict[str, str]:
    """What was typed, to be shown again."""
    return {name: asked.word(name) for name in FILTERS}


def start_counting(asked: WebRequest) -> WebJob | None:
    """The job that brings the counts up to date, where that takes a while; a few sessions are counted on the way."""
    going = asked.site.jobs.last(COUNT, "")
    if going is not None and going.state in ("waiting", "running"):
        return going
    if len(asked.store.stale_sessions(_MOST_UNCOUNTED)) < _MOST_UNCOUNTED:
        return None

    def work(step: Step) -> int:
        return asked.site.archive.run_separately(lambda store: counts.catch_up(store, step))

    return asked.site.jobs.start(COUNT, "", work)


def cached_answer(asked: WebRequest, name: str, look: Callable[[], T]) -> T:
    """An answer to the same question about the same sessions, held for a while."""
    given = "&".join(f"{word}={asked.word(word)}" for word in (*FILTERS, "tool", "by", "period"))
    return asked.site.for_a_while(f"{name}?{given}", look)


def load_prices(asked: WebRequest) -> Prices:
    """List prices, and the user's own where there are some."""
    return asked.site.for_a_while("prices", lambda: cost.load_prices(asked.site.prices))
