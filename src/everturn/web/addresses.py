"""Every address that the server answers: the pages, and the operations of the JSON API.

The OpenAPI document is made from `OPERATIONS`; nothing else is answered under /api.
"""

from __future__ import annotations

from msgspec import Struct

from everturn.web.analytics_scope import require_counts
from everturn.web.api.analytics import ANALYTICS_OPERATIONS
from everturn.web.api.operation import Operation, openapi_operation
from everturn.web.api.sessions import CHANGE_OPERATIONS, READ_OPERATIONS
from everturn.web.pages import (
    costs,
    files,
    health,
    home,
    lineage,
    paths,
    record,
    restore,
    search,
    session,
    session_panels,
    sessions,
)
from everturn.web.request import Draw


class PageAddress(Struct, frozen=True):
    """A page and its address. A page that `counts` may have to update the counts of the analytics first."""

    path: str
    draw: Draw
    counts: bool = False


PAGES = (
    PageAddress("/", home.draw),
    PageAddress("/home/overview", require_counts(home.draw_overview), counts=True),
    PageAddress("/home/spending", require_counts(home.draw_spending), counts=True),
    PageAddress("/home/open", home.draw_open),
    PageAddress("/home/calendar", home.draw_calendar, counts=True),
    PageAddress("/home/safety", home.draw_safety),
    PageAddress("/sessions", sessions.draw),
    PageAddress("/session/{wanted:path}", session.redirect_by_name),
    PageAddress("/s/{session:int}", session.draw),
    PageAddress("/s/{session:int}/map", session.draw_map),
    PageAddress("/s/{session:int}/find", session_panels.draw_find),
    PageAddress("/s/{session:int}/details", session_panels.draw_details, counts=True),
    PageAddress("/s/{session:int}/export", session_panels.draw_export),
    PageAddress("/s/{session:int}/m/{message:int}", record.draw),
    PageAddress("/s/{session:int}/m/{message:int}/picture/{name}", record.draw_picture),
    PageAddress("/s/{session:int}/restore", restore.draw),
    PageAddress("/s/{session:int}/lineage", lineage.draw),
    PageAddress("/s/{session:int}/files", files.draw),
    PageAddress("/s/{session:int}/files/{number:int}", files.draw_lines),
    PageAddress("/search", search.draw),
    PageAddress("/paths", paths.draw),
    PageAddress("/paths/tools", require_counts(paths.draw_tools), counts=True),
    PageAddress("/paths/found", require_counts(paths.draw_found), counts=True),
    PageAddress("/paths/struggles", require_counts(paths.draw_struggles), counts=True),
    PageAddress("/paths/tool", paths.draw_tool, counts=True),
    PageAddress("/costs", costs.draw),
    PageAddress("/costs/total", require_counts(costs.draw_total), counts=True),
    PageAddress("/costs/by", require_counts(costs.draw_by), counts=True),
    PageAddress("/health", health.draw),
)

OPERATIONS: tuple[Operation, ...] = (*READ_OPERATIONS, *ANALYTICS_OPERATIONS, *CHANGE_OPERATIONS)
OPERATIONS += (openapi_operation(OPERATIONS),)
