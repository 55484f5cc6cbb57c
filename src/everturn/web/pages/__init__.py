"""The pages, one file each: a function that draws what was asked for. This list gives each its address."""

from __future__ import annotations

from msgspec import Struct

from everturn.web.asking import Draw
from everturn.web.pages import costs, health, home, lineage, paths, record, restore, search, session, sessions


class Address(Struct, frozen=True):
    """A page and where it is. One that `counts` may have to bring the counts of the analytics up to date first."""

    path: str
    draw: Draw
    counts: bool = False


PAGES = (
    Address("/", home.draw),
    Address("/home/calendar", home.draw_calendar, counts=True),
    Address("/home/safety", home.draw_safety),
    Address("/sessions", sessions.draw),
    Address("/session/{wanted:path}", session.by_name),
    Address("/s/{session:int}", session.draw),
    Address("/s/{session:int}/map", session.draw_map),
    Address("/s/{session:int}/m/{message:int}", record.draw),
    Address("/s/{session:int}/m/{message:int}/picture/{name}", record.draw_picture),
    Address("/s/{session:int}/restore", restore.draw),
    Address("/s/{session:int}/lineage", lineage.draw),
    Address("/search", search.draw),
    Address("/paths", paths.draw),
    Address("/paths/tools", paths.draw_tools, counts=True),
    Address("/paths/found", paths.draw_found, counts=True),
    Address("/paths/struggles", paths.draw_struggles, counts=True),
    Address("/paths/tool", paths.draw_tool, counts=True),
    Address("/costs", costs.draw),
    Address("/costs/total", costs.draw_total, counts=True),
    Address("/costs/by", costs.draw_by, counts=True),
    Address("/health", health.draw),
)
