"""Paths: which tools agents use, in which order, where they struggle and how they recover."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

from everturn.analytics.counts import TrailHandle, read_counts
from everturn.analytics.inspect import ToolNeighbour, inspect_tools, similar_tools
from everturn.analytics.paths import find_paths
from everturn.analytics.plot_drawings import plot_svg
from everturn.analytics.plots import errors_by_position, transitions, turn_lengths
from everturn.analytics.struggles import Kind, find_struggles, group_kinds
from everturn.errors import NothingFound
from everturn.export.page.markup import Html
from everturn.web.analytics_scope import cached_answer, filters_of, scope_of
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import archived_agents

_TOOLS, _PATHS, _KINDS = 20, 25, 20


def draw(request: WebRequest) -> PageReply:
    """Draw the page; its parts are fetched later."""
    values: dict[str, Any] = {
        "filters": filters_of(request),
        "agents": archived_agents(request, request.sources),
        **query_of(request),
    }
    return PageReply("paths", values, "Paths")


def draw_tools(request: WebRequest) -> PageReply:

    def look() -> dict[str, Any]:
        scope = scope_of(request)
        heat, lengths = transitions(request.store, scope), turn_lengths(request.store, scope)
        tools = read_counts(request.store, scope, ("tool_total",)).tools()
        most = max((one.n for one in tools), default=1)
        rows = [
            {
                "name": request.line(one.tool, 60), "n": one.n, "errors": one.errors, "sessions": one.sessions,
                "share": round(100 * one.n / most, 1), "failing": round(100 * one.errors / one.n, 1),
                "ms": one.duration_ms // one.timed if one.timed else None,
                "href": _filtered_address(request, "/paths/tool", tool=one.tool),
            }
            for one in tools[:_TOOLS]
        ]  # fmt: skip
        return {
            "tools": rows,
            "more": len(tools) - len(rows),
            "plots": [_plot_html(one) for one in (heat, lengths) if one],
        }

    return PageReply("tools", cached_answer(request, "tools", look))


def draw_found(request: WebRequest) -> PageReply:
    """Draw the paths that chance does not explain."""
    found = cached_answer(request, "found", lambda: find_paths(request.store, scope_of(request), _PATHS))
    items = [{"path": request.line(one.path, 300), "one": one} for one in found.items]
    return PageReply("found", {"items": items, "found": found, "subagents": scope_of(request).subagents})


def draw_struggles(request: WebRequest) -> PageReply:

    def look() -> list[Kind]:
        return group_kinds(request.store, find_struggles(request.store, scope_of(request)))[:_KINDS]

    items = [_kind_row(request, one) for one in cached_answer(request, "struggles", look)]
    return PageReply("struggles", {"items": items})


def draw_tool(request: WebRequest) -> PageReply:
    """Draw one tool: its neighbours, its positions, its failures."""
    name = request.word("tool")
    found = inspect_tools(request.store, scope_of(request), name) if name else None
    if found is None:
        others = ", ".join(similar_tools(request.store, scope_of(request), name)) if name else ""
        raise NothingFound(f"no call of a tool {name[:80]!r}" + (f"; did you mean {others[:200]}?" if others else ""))
    lists = {
        "Before it": found.before,
        "After it": found.after,
        "Beside it, in parallel": found.beside,
        "After a failure": found.after_failure,
    }
    values: dict[str, Any] = {
        "name": request.line(name, 100),
        "found": found,
        "lists": {title: _neighbour_rows(request, ones, title) for title, ones in lists.items() if ones},
        "plot": _plot_html(errors_by_position(found)) if len(found.positions) > 1 else "",
        **query_of(request),
    }
    return PageReply("tool", values, values["name"])


def _neighbour_rows(request: WebRequest, ones: list[ToolNeighbour], title: str) -> list[dict[str, Any]]:
    edge = f"({'start' if title.startswith('Before') else 'end'} of the turn)"
    return [
        {
            "name": request.line(one.tool, 60) or edge, "n": one.n, "share": round(100 * one.share),
            "href": _filtered_address(request, "/paths/tool", tool=one.tool) if one.tool else "",
        }
        for one in ones[:10]
    ]  # fmt: skip


def _kind_row(request: WebRequest, one: Kind) -> dict[str, Any]:
    ends = sorted(one.endings.items(), key=lambda pair: -pair[1])
    return {
        "tool": request.line(one.tool, 60),
        "error": one.error_class.replace("_", " ") or "error",
        "one": one,
        "endings": ", ".join(f"{name} {n}" for name, n in ends if n),
        "recoveries": [(request.line(path, 120), n) for path, n in one.recoveries[:3]],
        "seen": [_seen_link(handle) for handle in one.evidence],
    }


def _seen_link(handle: TrailHandle) -> dict[str, str]:
    where = f"/session/{quote(handle.session, errors='replace')}?turn={handle.turn}"
    return {"label": f"{handle.session.rpartition('/')[2][:8]} t{handle.turn}", "href": where}


def _plot_html(plot: Any) -> Html:
    return Html(plot_svg(plot, standalone=False))


def query_of(request: WebRequest) -> dict[str, str]:
    given = {name: value for name, value in filters_of(request).items() if value}
    return {"query": f"?{urlencode(given, errors='replace')}" if given else ""}


def _filtered_address(request: WebRequest, path: str, **more: str) -> str:
    given = {name: value for name, value in filters_of(request).items() if value}
    return f"{path}?{urlencode({**given, **more}, errors='replace')}"
