"""Home: the last day, week and month, running sessions, spending, open work, activity over a year, and what is at risk.

The page itself is quick; each part that counts or reads more is fetched when the page is there, and cached.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from everturn.analytics.cost import dollars
from everturn.analytics.plot_drawings import plot_svg
from everturn.analytics.plots import Calendar, activity_calendar
from everturn.analytics.stats import Stats, count_stats
from everturn.export.page.markup import Html
from everturn.maintenance.doctor import SourceRoot
from everturn.model.archive import Session, SessionText
from everturn.sessions.state import session_state
from everturn.store.contract import AnalyticsScope, SessionFilter
from everturn.text.printable import plural
from everturn.web.analytics_scope import load_prices
from everturn.web.job_starts import health_now, safe_roots
from everturn.web.pages.costs import plot_spending, spending_rows
from everturn.web.pages.session import turn_address
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import session_rows, title_of

_RECENT = 14
_SPANS = {"24 hours": 1, "7 days": 7, "30 days": 30, "all time": None}  # in days
_TOP = 5  # projects, models and kinds of failures
_OPEN_SESSIONS = 6  # newest sessions that are read for open work
_LONGEST_SESSION = 4_000  # messages of a session that is read for open work
_OPEN_ITEMS = 3  # of each session
_DAY = 86_400_000
_YEAR = 371 * _DAY


def draw(request: WebRequest) -> PageReply:
    """Draw the page; the parts that examine every file are fetched later."""
    pairs, _ = request.store.sessions(SessionFilter(), _RECENT)
    total = request.site.for_a_while("total", lambda: request.store.count_sessions(SessionFilter()), 5_000)
    newest = pairs[0][0].ended if pairs else None
    return PageReply("home", {"rows": session_rows(request, pairs), "total": total, "newest": newest})


def draw_overview(request: WebRequest) -> PageReply:
    """Draw sessions, turns, failures and cost of the last day, week and month, and of all time."""

    def look() -> dict[str, Any]:
        spans = {name: _stats_since(request, days) for name, days in _SPANS.items()}
        whole = spans["all time"]
        month = spans["30 days"] if spans["30 days"].total.turns else whole
        return {
            "spans": [
                {
                    "name": name,
                    "total": found.total,
                    "sessions": request.store.count_sessions(_since(request, _SPANS[name])),
                    "cost": dollars(found.total.cost),
                }
                for name, found in spans.items()
            ],
            "failures": [{"name": one.name.replace("_", " "), "n": one.n} for one in month.errors[:_TOP]],
            "is_month": month is not whole,
        }

    return PageReply("overview", request.site.for_a_while("overview", look), "Overview")


def draw_spending(request: WebRequest) -> PageReply:
    """Draw the cost of each month, and what projects and models cost."""

    def look() -> dict[str, Any]:
        tops = {
            title: spending_rows(request, _stats_since(request, None, by), by)[:_TOP]
            for by, title in (("workspace", "By project"), ("model", "By model"))
        }
        return {"plot": plot_spending(_stats_since(request, None), "month", 13), "tops": tops}

    return PageReply("spending", request.site.for_a_while("spending", look), "Spending")


def draw_open(request: WebRequest) -> PageReply:
    """Draw what the newest sessions left open and decided."""
    rows, _ = request.store.sessions(SessionFilter(), _OPEN_SESSIONS)
    found = [_open_work(request, session, text) for session, text in rows if session.n_messages <= _LONGEST_SESSION]
    return PageReply("open", {"sessions": [one for one in found if one["items"]]}, "Open work")


def _open_work(request: WebRequest, session: Session, text: SessionText) -> dict[str, Any]:
    """Return the next steps, failing checks and decisions of a session. Cached until it grows."""

    def look() -> dict[str, Any]:
        state = session_state(request.store, request.sources, session)
        items = [("next", one.text, one.turn) for one in state.next_steps[-_OPEN_ITEMS:]]
        items += [("decided", one.text, one.turn) for one in state.decisions[-_OPEN_ITEMS:]]
        shown = [
            {"kind": kind, "text": request.line(words, 160), "to": turn_address(session.id, turn + 1)}
            for kind, words, turn in items
        ]
        return {"number": session.id, "title": title_of(request, session, text), "ended": session.ended, "items": shown}

    return request.site.until_it_grows("open", session, look)


def _stats_since(request: WebRequest, days: int | None, by: str = "") -> Stats:
    scope = AnalyticsScope(_since(request, days) if days else None)
    return count_stats(request.store, scope, load_prices(request), "month", by)


def _since(request: WebRequest, days: int | None) -> SessionFilter:
    return SessionFilter(since=request.now - days * _DAY if days else None)


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
    when = "at any time" if left <= 0 else f"within {plural(left // _DAY + 1, 'day')}"
    return {**asdict(root), "path": request.line(root.path, 200), "when": when}
