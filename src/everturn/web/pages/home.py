"""Home: activity over a year, the latest sessions, what is safe and what an agent is about to delete."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from everturn.analytics.counts import AnalyticsScope
from everturn.analytics.plot_drawings import plot_svg
from everturn.analytics.plots import Calendar, activity_calendar
from everturn.export.page.markup import Html
from everturn.maintenance.doctor import SourceRoot
from everturn.store.contract import SessionFilter
from everturn.web.job_starts import health_now, safe_roots
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import session_lines

_RECENT = 8
_DAY = 86_400_000
_YEAR = 371 * _DAY


def draw(request: WebRequest) -> PageReply:
    """Draw the page; the parts that examine every file are fetched later."""
    pairs, _ = request.store.sessions(SessionFilter(), _RECENT)
    total = request.site.for_a_while("total", lambda: request.store.count_sessions(SessionFilter()), 5_000)
    newest = pairs[0][0].ended if pairs else None
    return PageReply("home", {"lines": session_lines(request, pairs), "total": total, "newest": newest})


def draw_calendar(request: WebRequest) -> PageReply:
    """Draw the turns per day over a year."""

    def look() -> Html:
        scope = AnalyticsScope(SessionFilter(since=request.now - _YEAR))
        found = activity_calendar(request.store, scope)
        return Html(plot_svg(_fill_year(found, request.now), standalone=False)) if found is not None else Html("")

    return PageReply("calendar", {"drawn": request.site.for_a_while("calendar", look)}, "Activity")


def draw_safety(request: WebRequest) -> PageReply:
    shown = [_root_facts(request, root) for root in safe_roots(request) if root.files]
    names = {f"{root.title} in {root.path}" for root in safe_roots(request)}
    problems = [
        {name: request.line(value, 300) for name, value in asdict(check).items()}
        for check in health_now(request).checks
        if check.level != "ok" and check.name not in names
    ]
    return PageReply("safety", {"roots": shown, "problems": problems}, "What is safe")


def _fill_year(found: Calendar, now: int) -> Calendar:
    """Return the calendar up to today: a pause is worth seeing too."""
    today = datetime.fromtimestamp(now / 1000, UTC).date()
    first = today - timedelta(weeks=52, days=today.weekday())
    by_day = {found.first + timedelta(days=number): value for number, value in enumerate(found.days)}
    length = max((today - first).days, (max(by_day) - first).days) + 1  # clocks differ: work may be dated tomorrow
    return replace(found, first=first, days=[by_day.get(first + timedelta(days=n), 0) for n in range(length)])


def _root_facts(request: WebRequest, root: SourceRoot) -> dict[str, Any]:
    left = root.lost_first - request.now
    when = "now" if left <= 0 else f"within {left // _DAY + 1} days"
    return {**asdict(root), "path": request.line(root.path, 200), "when": when}
