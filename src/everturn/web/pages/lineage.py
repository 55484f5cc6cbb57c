"""The lineage of a session as a graph: resumed, forked, subagent and saved-output sessions, elders to the left.

The graph is collected outwards from one session and bounded: of a family of thousands of subagents the page shows as many
as fit, and says so.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct

from everturn.model.archive import Session
from everturn.sessions.lineage import Relative, lineage
from everturn.sessions.lookup import marks_of
from everturn.text.printable import cut_cells, plural
from everturn.text.times import iso
from everturn.web import schemas
from everturn.web.request import PageReply, WebRequest
from everturn.web.session_lines import title_of

MOST_NODES = 60


class LineageGraph(Struct):
    """Nodes in the order of the traversal, and the numbers of the archived ones."""

    nodes: list[schemas.NodeJson]
    edges: list[schemas.EdgeJson]
    numbers: dict[str, int]  # 0: not in the archive
    left_out: int = 0


class GraphSpot(Struct, frozen=True):
    """The position of a node: its generation and its row."""

    column: int
    row: int


def related_sessions(request: WebRequest, session: Session) -> LineageGraph:
    """Return the sessions related to a session, up to `MOST_NODES`."""
    graph = LineageGraph([_make_node(request, session)], [], {session.native_id: session.id})
    todo = deque([session])
    while todo:
        current = todo.popleft()
        kin = lineage(request.store, current)
        pairs = [(one, True) for one in kin.ancestors] + [(one, False) for one in (*kin.forks, *kin.children)]
        elder = current.native_id
        for one, is_elder in pairs:
            if one.native_id not in graph.numbers and not _add_relative(request, graph, one, todo):
                continue
            if is_elder:
                _add_edge(graph, elder, one.native_id, one)
                elder = one.native_id if one.relation != "continues" else elder
            else:
                _add_edge(graph, one.native_id, current.native_id, one)
    return graph


def _add_relative(request: WebRequest, graph: LineageGraph, one: Relative, todo: deque[Session]) -> bool:
    if len(graph.nodes) >= MOST_NODES:
        graph.left_out += 1
        return False
    if one.session is None:
        name = request.line(one.native_id.rpartition("/")[2] or one.native_id, 60)
        graph.nodes.append(schemas.NodeJson(one.native_id, name, "", "", False, None, 0, 0))
        graph.numbers[one.native_id] = 0
    else:
        graph.nodes.append(_make_node(request, one.session))
        graph.numbers[one.native_id] = one.session.id
        todo.append(one.session)
    return True


def _add_edge(graph: LineageGraph, younger: str, elder: str, one: Relative) -> None:
    known = {(edge.younger, edge.elder) for edge in graph.edges}
    if younger != elder and (younger, elder) not in known:
        turn = one.call.turn + 1 if one.call is not None else None
        graph.edges.append(schemas.EdgeJson(younger, elder, one.relation, turn))


def _make_node(request: WebRequest, session: Session) -> schemas.NodeJson:
    text = request.store.session(session.id)[1]
    title = title_of(request, session, text, marks_of(request.store, session))
    started = iso(session.started) or None
    compacted = _count_compactions(request, session)
    return schemas.NodeJson(
        session.native_id, title, session.agent, session.kind, True, started, session.n_turns, compacted
    )


def _count_compactions(request: WebRequest, session: Session) -> int:
    """Count the compactions of a session. Cached until it grows, as this reads all its turns."""

    def look() -> int:
        return sum(bool(turn.compacted) for turn in request.store.turns(session.id))

    return request.site.until_it_grows("compactions", session, look)


# layout ---------------------------------------------------------------------------------------------------------------
def lay_out_graph(graph: LineageGraph) -> dict[str, GraphSpot]:
    """Return a position for each node: right of its elders, families together."""
    elders: dict[str, list[str]] = {}
    younger: dict[str, list[str]] = {}
    for edge in graph.edges:
        elders.setdefault(edge.younger, []).append(edge.elder)
        younger.setdefault(edge.elder, []).append(edge.younger)
    by_age = sorted(graph.nodes, key=lambda node: (node.started or "", node.id))
    names = [node.id for node in by_age]
    spots: dict[str, GraphSpot] = {}
    row = 0
    for name in sorted(names, key=lambda name: bool(elders.get(name))):  # roots first
        if name not in spots:
            row = _place_family(name, 0, row, younger, spots)
    return spots


def _place_family(name: str, column: int, row: int, younger: dict[str, list[str]], spots: dict[str, GraphSpot]) -> int:
    """Place a node and its descendants; return the next free row."""
    todo = [(name, column)]
    is_first = True
    last = column
    while todo:
        one, depth = todo.pop()
        if one in spots:
            continue
        if not is_first and depth <= last:
            row += 1
        spots[one] = GraphSpot(depth, row)
        is_first, last = False, depth
        todo += [(child, depth + 1) for child in reversed(younger.get(one, [])) if child not in spots]
    return row + 1


_WIDE, _HIGH, _GAP_X, _GAP_Y = 220, 52, 70, 18
RELATIONS = {
    "subagent_of": "subagent",
    "forked_from": "forked",
    "continues": "continued",
    "output_of": "saved output",
    "teammate_of": "team",
}


def draw(request: WebRequest) -> PageReply:
    session, text = request.session()
    graph = related_sessions(request, session)
    spots = lay_out_graph(graph)
    columns = max(spot.column for spot in spots.values()) + 1
    rows = max(spot.row for spot in spots.values()) + 1
    values = {
        "session": session,
        "title": title_of(request, session, text),
        "boxes": [_make_box(request, graph, node, spots, session.native_id) for node in graph.nodes],
        "ways": [way for edge in graph.edges if (way := _make_way(edge, spots))],
        "width": columns * _WIDE + (columns - 1) * _GAP_X + 4,
        "height": rows * (_HIGH + _GAP_Y) + 4,
        "box": (_WIDE, _HIGH),
        "left_out": graph.left_out,
        "most": MOST_NODES,
        "relations": sorted({RELATIONS.get(edge.relation, edge.relation) for edge in graph.edges}),
    }
    return PageReply("lineage", values, f"Lineage of {values['title']}")


def _make_box(
    request: WebRequest, graph: LineageGraph, node: schemas.NodeJson, spots: dict[str, GraphSpot], here: str
) -> dict[str, Any]:
    x, y = _spot_corner(spots[node.id])
    row = graph.numbers[node.id]
    agent = request.line(request.site.titles.get(node.agent, node.agent), 24)
    turns = plural(node.turns, "turn")
    about = f"{agent} · {turns}" if node.archived else "not in the archive"
    if node.kind not in ("", "main"):
        about = f"{node.kind} · {turns}"
    if node.compacted:
        about += f" · compacted {node.compacted}×"
    return {
        "x": x, "y": y, "href": f"/s/{row}" if row else "", "title": cut_cells(node.title, 25), "about": about,
        "kind": node.kind or "missing", "is_here": node.id == here, "whole": node.title,
    }  # fmt: skip


def _make_way(edge: schemas.EdgeJson, spots: dict[str, GraphSpot]) -> dict[str, Any] | None:
    """Return the line from a session to a younger one."""
    if edge.elder not in spots or edge.younger not in spots:
        return None
    (x1, y1), (x2, y2) = _spot_corner(spots[edge.elder]), _spot_corner(spots[edge.younger])
    start, end, middle = (x1 + _WIDE, y1 + _HIGH // 2), (x2, y2 + _HIGH // 2), (x1 + _WIDE + x2) // 2
    path = f"M{start[0]} {start[1]} C{middle} {start[1]} {middle} {end[1]} {end[0]} {end[1]}"
    relation, label = edge.relation.split("_", maxsplit=1)[0], f"t{edge.turn}" if edge.turn else ""
    return {"path": path, "relation": relation, "x": end[0] - 6, "y": end[1] - 5, "label": label}


def _spot_corner(spot: GraphSpot) -> tuple[int, int]:
    return 2 + spot.column * (_WIDE + _GAP_X), 2 + spot.row * (_HIGH + _GAP_Y)
