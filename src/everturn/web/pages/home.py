"""Home: when there was work, what was worked on last, what is safe and what an agent is about to delete."""

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


def draw(asked: WebRequest) -> PageReply:
    """The page; what takes a look at every file comes in when it is there."""
    pairs, _ = asked.store.sessions(SessionFilter(), _RECENT)
    total = asked.site.for_a_while("total", lambda: asked.store.count_sessions(SessionFilter()), 5_000)
    newest = pairs[0][0].ended if pairs else None
    return PageReply("home", {"lines": session_lines(asked, pairs), "total": total, "newest": newest})


def draw_calendar(asked: WebRequest) -> PageReply:
    """Turns by day, over a year."""

    def look() -> Html:
        scope = AnalyticsScope(SessionFilter(since=asked.now - _YEAR))
        found = activity_calendar(asked.store, scope)
        return Html(plot_svg(_fill_year(found, asked.now), standalone=False)) if found is not None else Html("")

    return PageReply("calendar", {"drawn": asked.site.for_a_while("calendar", look)}, "Activity")


def draw_safety(asked: WebRequest) -> PageReply:
    """The agents' folders, and what deserves a look."""
    shown = [_root_facts(asked, root) for root in safe_roots(asked) if root.files]
    names = {f"{root.title} in {root.path}" for root in safe_roots(asked)}
    problems = [
        {name: asked.line(value, 300) for name, value in asdict(check).items()}
        for check in health_now(asked).checks
        if check.level != "ok" and check.name not in names
    ]
    return PageReply("safety", {"roots": shown, "problems": problems}, "What is safe")


def _fill_year(found: Calendar, now: int) -> Calendar:
    """Up to today, whenever the last work was: that there was none lately is worth seeing."""
    today = datetime.fromtimestamp(now / 1000, UTC).date()
    first = today - timedelta(weeks=52, days=today.weekday())
    by_day = {found.first + timedelta(days=number): value for number, value in enumerate(found.days)}
    length = max((today - first).days, (max(by_day) - first).days) + 1  # clocks differ
    return replace(found, first=first, days=[by_day.get(first + timedelta(days=n), 0) for n in range(length)])


def _root_facts(asked: WebRequest, root: SourceRoot) -> dict[str, Any]:
    left = root.lost_first - asked.now
    when = "now" if left <= 0 else f"within {left // _DAY + 1} days"
    return {**asdict(root), "path": asked.line(root.path, 200), "when": when}
