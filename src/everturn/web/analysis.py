"""What the pages about tool use and cost have in common: which sessions, counts that are up to date, answers held a while."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from everturn.analyse import money, plane
from everturn.analyse.plane import Scope
from everturn.analyse.prices import Prices
from everturn.store import SessionFilter
from everturn.web.asking import Asked
from everturn.web.jobs import Job, Step

T = TypeVar("T")

COUNT = "count"
_MANY = 200  # sessions to be counted that nobody should have to wait for
FILTERS = ("agent", "workspace", "since", "subagents")


def scope_of(asked: Asked) -> Scope:
    """The sessions that are meant. Raises Usage."""
    agent, workspace, since = asked.word("agent"), asked.word("workspace"), asked.when("since")
    wanted = SessionFilter(agent=agent, workspace=workspace, since=since)
    return Scope(wanted if agent or workspace or since is not None else None, None, not is_own(asked))


def is_own(asked: Asked) -> bool:
    """Whether what subagents did is left out."""
    return asked.choice("subagents", ("own", "inclusive")) == "own"


def filters_of(asked: Asked) -> dict[str, str]:
    """What was typed, to be shown again."""
    return {name: asked.word(name) for name in FILTERS}


def counting(asked: Asked) -> Job | None:
    """The job that brings the counts up to date, where that takes a while; a few sessions are counted on the way."""
    going = asked.site.jobs.last(COUNT, "")
    if going is not None and going.state in ("waiting", "running"):
        return going
    if len(asked.store.stale_sessions(_MANY)) < _MANY:
        return None

    def work(step: Step) -> int:
        return asked.site.archive.aside(lambda store: plane.catch_up(store, step))

    return asked.site.jobs.start(COUNT, "", work)


def held(asked: Asked, name: str, look: Callable[[], T]) -> T:
    """An answer to the same question about the same sessions, held for a while."""
    given = "&".join(f"{word}={asked.word(word)}" for word in (*FILTERS, "tool", "by", "period"))
    return asked.site.for_a_while(f"{name}?{given}", look)


def prices(asked: Asked) -> Prices:
    """List prices, and the user's own where there are some."""
    return asked.site.for_a_while("prices", lambda: money.load(asked.site.prices))
