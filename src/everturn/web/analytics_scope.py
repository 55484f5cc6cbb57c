"""Shared by the pages and operations about tool use and cost: the scope, up-to-date counts, cached answers, prices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from everturn.analytics import cost, counts
from everturn.analytics.cost import Prices
from everturn.sessions.lookup import typed_filter
from everturn.store.contract import AnalyticsScope
from everturn.web.request import Bytes, Draw, PageReply, RedirectReply, WebRequest
from everturn.web.site import Step, WebJob

T = TypeVar("T")

COUNT = "count"
_MOST_UNCOUNTED = 200  # uncounted sessions that a request may wait for
FILTERS = ("agent", "workspace", "since", "subagents")


def scope_of(request: WebRequest) -> AnalyticsScope:
    """Return the scope of the request. Raises UsageError."""
    given = {name: request.word(name) for name in ("agent", "workspace", "since")}
    session_filter = typed_filter(given, request.now) if any(given.values()) else None
    return AnalyticsScope(session_filter, None, request.choice("subagents", ("own", "inclusive")) != "own")


def filters_of(request: WebRequest) -> dict[str, str]:
    """Return the typed filters, to show them again."""
    return {name: request.word(name) for name in FILTERS}


def start_counting(request: WebRequest) -> WebJob | None:
    """Return the job that updates the counts, if there are many; None when the request itself can count the few."""
    going = request.site.jobs.last(COUNT, "")
    if going is not None and going.state in ("waiting", "running"):
        return going
    if len(request.store.stale_sessions(_MOST_UNCOUNTED)) < _MOST_UNCOUNTED:
        return None

    def work(step: Step) -> int:
        return request.site.archive.run_separately(lambda store: counts.catch_up(store, step))

    return request.site.jobs.start(COUNT, "", work)


def require_counts(draw: Draw) -> Draw:
    """Draw a page when the counts are up to date; until then, the progress of the job that updates them."""

    def draw_when_counted(request: WebRequest) -> PageReply | RedirectReply | Bytes:
        job = start_counting(request)
        return draw(request) if job is None else PageReply("counting", {"job": job})

    return draw_when_counted


def cached_answer(request: WebRequest, name: str, look: Callable[[], T]) -> T:
    """Return the answer to the same request, cached for a while."""
    given = "&".join(f"{word}={request.word(word)}" for word in (*FILTERS, "tool", "by", "period"))
    return request.site.for_a_while(f"{name}?{given}", look)


def load_prices(request: WebRequest) -> Prices:
    return request.site.for_a_while("prices", lambda: cost.load_prices(request.site.prices))
