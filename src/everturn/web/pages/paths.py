"""Paths: which tools agents use, in which order, where they struggle and what gets them out."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

from everturn.analyse.charts import svg
from everturn.analyse.inspect import Beside, inspect, near
from everturn.analyse.paths import paths
from everturn.analyse.plane import counts
from everturn.analyse.plots import errors_by_position, transitions, turn_lengths
from everturn.analyse.struggles import Kind, kinds, struggles
from everturn.analyse.tracks import Handle
from everturn.errors import NothingFound
from everturn.export.page import Html
from everturn.web.analysis import counting, filters_of, held, scope_of
from everturn.web.asking import Asked, Page
from everturn.web.listing import agents_there

_TOOLS, _PATHS, _KINDS = 20, 25, 20


class Seen(Struct, frozen=True):
    """Where something can be looked at."""

    label: str
    href: str


def draw(asked: Asked) -> Page:
    """The page; its parts come in when they are there."""
    values: dict[str, Any] = {
        "filters": filters_of(asked),
        "agents": agents_there(asked, asked.sources),
        **query_of(asked),
    }
    return Page("paths", values, "Paths")


def draw_tools(asked: Asked) -> Page:
    """The tools with their figures, and which comes after which."""
    if job := counting(asked):
        return Page("counting", {"job": job})

    def look() -> dict[str, Any]:
        scope = scope_of(asked)
        heat, lengths = transitions(asked.store, scope), turn_lengths(asked.store, scope)
        tools = counts(asked.store, scope, ("tool_total",)).tools()
        most = max((one.n for one in tools), default=1)
        rows = [
            {
                "name": asked.line(one.tool, 60), "n": one.n, "errors": one.errors, "sessions": one.sessions,
                "share": round(100 * one.n / most, 1), "failing": round(100 * one.errors / one.n, 1),
                "ms": one.duration_ms // one.timed if one.timed else None,
                "href": _with(asked, "/paths/tool", tool=one.tool),
            }
            for one in tools[:_TOOLS]
        ]  # fmt: skip
        return {"tools": rows, "more": len(tools) - len(rows), "plots": [_drawn(one) for one in (heat, lengths) if one]}

    return Page("tools", held(asked, "tools", look))


def draw_found(asked: Asked) -> Page:
    """Paths that chance does not explain."""
    if job := counting(asked):
        return Page("counting", {"job": job})
    found = held(asked, "found", lambda: paths(asked.store, scope_of(asked), _PATHS))
    items = [{"path": asked.line(one.path, 300), "one": one} for one in found.items]
    return Page("found", {"items": items, "found": found})


def draw_struggles(asked: Asked) -> Page:
    """Runs of similar failures, and what ended them."""
    if job := counting(asked):
        return Page("counting", {"job": job})

    def look() -> list[Kind]:
        return kinds(asked.store, struggles(asked.store, scope_of(asked)))[:_KINDS]

    items = [_kind(asked, one) for one in held(asked, "struggles", look)]
    return Page("struggles", {"items": items})


def draw_tool(asked: Asked) -> Page:
    """One tool: what comes before and after it, where it stands, how it fails."""
    name = asked.word("tool")
    found = inspect(asked.store, scope_of(asked), name) if name else None
    if found is None:
        others = ", ".join(near(asked.store, scope_of(asked), name)) if name else ""
        raise NothingFound(f"no call of a tool {name[:80]!r}" + (f"; did you mean {others[:200]}?" if others else ""))
    lists = {
        "Before it": found.before,
        "After it": found.after,
        "Beside it, in parallel": found.beside,
        "After a failure": found.after_failure,
    }
    values: dict[str, Any] = {
        "name": asked.line(name, 100),
        "found": found,
        "lists": {title: _others(asked, ones, title) for title, ones in lists.items() if ones},
        "plot": _drawn(errors_by_position(found)) if len(found.positions) > 1 else "",
        **query_of(asked),
    }
    return Page("tool", values, values["name"])


def _others(asked: Asked, ones: list[Beside], title: str) -> list[dict[str, Any]]:
    edge = f"({'start' if title.startswith('Before') else 'end'} of the turn)"
    return [
        {
            "name": asked.line(one.tool, 60) or edge, "n": one.n, "share": round(100 * one.share),
            "href": _with(asked, "/paths/tool", tool=one.tool) if one.tool else "",
        }
        for one in ones[:10]
    ]  # fmt: skip


def _kind(asked: Asked, one: Kind) -> dict[str, Any]:
    ends = sorted(one.endings.items(), key=lambda pair: -pair[1])
    return {
        "tool": asked.line(one.tool, 60),
        "error": one.error_class.replace("_", " ") or "error",
        "one": one,
        "endings": ", ".join(f"{name} {n}" for name, n in ends if n),
        "recoveries": [(asked.line(path, 120), n) for path, n in one.recoveries[:3]],
        "seen": [_seen(handle) for handle in one.evidence],
    }


def _seen(handle: Handle) -> Seen:
    where = f"/session/{quote(handle.session, errors='replace')}?turn={handle.turn}"
    return Seen(f"{handle.session.rpartition('/')[2][:8]} t{handle.turn}", where)


def _drawn(plot: Any) -> Html:
    return Html(svg(plot, standalone=False))


def query_of(asked: Asked) -> dict[str, str]:
    given = {name: value for name, value in filters_of(asked).items() if value}
    return {"query": f"?{urlencode(given, errors='replace')}" if given else ""}


def _with(asked: Asked, path: str, **more: str) -> str:
    given = {name: value for name, value in filters_of(asked).items() if value}
    return f"{path}?{urlencode({**given, **more}, errors='replace')}"
