"""Paths: which tools agents use, in which order, where they struggle and what gets them out."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

from everturn.analytics.counts import TrailHandle, read_counts
from everturn.analytics.inspect import ToolNeighbour, inspect_tools, similar_tools
from everturn.analytics.paths import find_paths
from everturn.analytics.plot_drawings import plot_svg
from everturn.analytics.plots import errors_by_position, transitions, turn_lengths
from everturn.analytics.struggles import Kind, find_struggles, group_kinds
from everturn.errors import NothingFound
from everturn.export.page.markup import Html
from everturn.web.analytics_scope import cached_answer, filters_of, scope_of, start_counting
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import archived_agents

_TOOLS, _PATHS, _KINDS = 20, 25, 20


class SeenLink(Struct, frozen=True):
    """Where something can be looked at."""

    label: str
    href: str


def draw(asked: WebRequest) -> PageReply:
    """The page; its parts come in when they are there."""
    values: dict[str, Any] = {
        "filters": filters_of(asked),
        "agents": archived_agents(asked, asked.sources),
        **query_of(asked),
    }
    return PageReply("paths", values, "Paths")


def draw_tools(asked: WebRequest) -> PageReply:
    """The tools with their figures, and which comes after which."""
    if job := start_counting(asked):
        return PageReply("counting", {"job": job})

    def look() -> dict[str, Any]:
        scope = scope_of(asked)
        heat, lengths = transitions(asked.store, scope), turn_lengths(asked.store, scope)
        tools = read_counts(asked.store, scope, ("tool_total",)).tools()
        most = max((one.n for one in tools), default=1)
        rows = [
            {
                "name": asked.line(one.tool, 60), "n": one.n, "errors": one.errors, "sessions": one.sessions,
                "share": round(100 * one.n / most, 1), "failing": round(100 * one.errors / one.n, 1),
                "ms": one.duration_ms // one.timed if one.timed else None,
                "href": _filtered_address(asked, "/paths/tool", tool=one.tool),
            }
            for one in tools[:_TOOLS]
        ]  # fmt: skip
        return {
            "tools": rows,
            "more": len(tools) - len(rows),
            "plots": [_plot_html(one) for one in (heat, lengths) if one],
        }

    return PageReply("tools", cached_answer(asked, "tools", look))


def draw_found(asked: WebRequest) -> PageReply:
    """Paths that chance does not explain."""
    if job := start_counting(asked):
        return PageReply("counting", {"job": job})
    found = cached_answer(asked, "found", lambda: find_paths(asked.store, scope_of(asked), _PATHS))
    items = [{"path": asked.line(one.path, 300), "one": one} for one in found.items]
    return PageReply("found", {"items": items, "found": found})


def draw_struggles(asked: WebRequest) -> PageReply:
    """Runs of similar failures, and what ended them."""
    if job := start_counting(asked):
        return PageReply("counting", {"job": job})

    def look() -> list[Kind]:
        return group_kinds(asked.store, find_struggles(asked.store, scope_of(asked)))[:_KINDS]

    items = [_kind_row(asked, one) for one in cached_answer(asked, "struggles", look)]
    return PageReply("struggles", {"items": items})


def draw_tool(asked: WebRequest) -> PageReply:
    """One tool: what comes before and after it, where it stands, how it fails."""
    name = asked.word("tool")
    found = inspect_tools(asked.store, scope_of(asked), name) if name else None
    if found is None:
        others = ", ".join(similar_tools(asked.store, scope_of(asked), name)) if name else ""
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
        "lists": {title: _neighbour_rows(asked, ones, title) for title, ones in lists.items() if ones},
        "plot": _plot_html(errors_by_position(found)) if len(found.positions) > 1 else "",
        **query_of(asked),
    }
    return PageReply("tool", values, values["name"])


def _neighbour_rows(asked: WebRequest, ones: list[ToolNeighbour], title: str) -> list[dict[str, Any]]:
    edge = f"({'start' if title.startswith('Before') else 'end'} of the turn)"
    return [
        {
            "name": asked.line(one.tool, 60) or edge, "n": one.n, "share": round(100 * one.share),
            "href": _filtered_address(asked, "/paths/tool", tool=one.tool) if one.tool else "",
        }
        for one in ones[:10]
    ]  # fmt: skip


def _kind_row(asked: WebRequest, one: Kind) -> dict[str, Any]:
    ends = sorted(one.endings.items(), key=lambda pair: -pair[1])
    return {
        "tool": asked.line(one.tool, 60),
        "error": one.error_class.replace("_", " ") or "error",
        "one": one,
        "endings": ", ".join(f"{name} {n}" for name, n in ends if n),
        "recoveries": [(asked.line(path, 120), n) for path, n in one.recoveries[:3]],
        "seen": [_seen_link(handle) for handle in one.evidence],
    }


def _seen_link(handle: TrailHandle) -> SeenLink:
    where = f"/session/{quote(handle.session, errors='replace')}?turn={handle.turn}"
    return SeenLink(f"{handle.session.rpartition('/')[2][:8]} t{handle.turn}", where)


def _plot_html(plot: Any) -> Html:
    return Html(plot_svg(plot, standalone=False))


def query_of(asked: WebRequest) -> dict[str, str]:
    given = {name: value for name, value in filters_of(asked).items() if value}
    return {"query": f"?{urlencode(given, errors='replace')}" if given else ""}


def _filtered_address(asked: WebRequest, path: str, **more: str) -> str:
    given = {name: value for name, value in filters_of(asked).items() if value}
    return f"{path}?{urlencode({**given, **more}, errors='replace')}"
