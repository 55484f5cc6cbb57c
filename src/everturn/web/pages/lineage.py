"""The lineage of a session as a picture: resumed, forked, subagent and saved-output sessions, elders to the left."""

from __future__ import annotations

from msgspec import Struct

from everturn.derive.printable import cut_cells
from everturn.web.asking import PageReply, WebRequest
from everturn.web.graph import MOST_NODES, GraphSpot, LineageGraph, lay_out_graph, related_sessions
from everturn.web.listing import title_of

_WIDE, _HIGH, _GAP_X, _GAP_Y = 220, 52, 70, 18
RELATIONS = {
    "subagent_of": "subagent",
    "forked_from": "forked",
    "continues": "continued",
    "output_of": "saved output",
    "teammate_of": "team",
}


class LineageBox(Struct, frozen=True):
    """A session in the picture."""

    x: int
    y: int
    href: str
    title: str
    about: str
    kind: str
    is_here: bool
    whole: str


class LineageWay(Struct, frozen=True):
    """A line from an elder to what came from it."""

    path: str
    relation: str
    x: int
    y: int
    label: str


def draw(asked: WebRequest) -> PageReply:
    """The picture."""
    session, text = asked.session()
    graph = related_sessions(asked, session)
    spots = lay_out_graph(graph)
    columns = max(spot.column for spot in spots.values()) + 1
    rows = max(spot.row for spot in spots.values()) + 1
    values = {
        "session": session,
        "title": title_of(asked, session, text),
        "boxes": [_make_box(asked, graph, number, spots, session.native_id) for number in range(len(graph.nodes))],
        "ways": [
            way for edge in graph.edges if (way := _make_way(edge.elder, edge.younger, edge.relation, edge.turn, spots))
        ],
        "width": columns * _WIDE + (columns - 1) * _GAP_X + 4,
        "height": rows * (_HIGH + _GAP_Y) + 4,
        "box": (_WIDE, _HIGH),
        "left_out": graph.left_out,
        "most": MOST_NODES,
        "relations": sorted({RELATIONS.get(edge.relation, edge.relation) for edge in graph.edges}),
    }
    return PageReply("lineage", values, f"Lineage of {values['title']}")


def _make_box(
    asked: WebRequest, graph: LineageGraph, number: int, spots: dict[str, GraphSpot], here: str
) -> LineageBox:
    node = graph.nodes[number]
    x, y = _spot_corner(spots[node.id])
    row = graph.numbers[node.id]
    agent = asked.line(asked.site.titles.get(node.agent, node.agent), 24)
    turns = f"{node.turns:,} turn{'' if node.turns == 1 else 's'}"
    about = f"{agent} · {turns}" if node.archived else "not in the archive"
    if node.kind not in ("", "main"):
        about = f"{node.kind} · {turns}"
    if node.compacted:
        about += f" · compacted {node.compacted}×"
    return LineageBox(
        x,
        y,
        f"/s/{row}" if row else "",
        cut_cells(node.title, 25),
        about,
        node.kind or "missing",
        node.id == here,
        node.title,
    )


def _make_way(
    elder: str, younger: str, relation: str, turn: int | None, spots: dict[str, GraphSpot]
) -> LineageWay | None:
    if elder not in spots or younger not in spots:
        return None
    (x1, y1), (x2, y2) = _spot_corner(spots[elder]), _spot_corner(spots[younger])
    start, end, middle = (x1 + _WIDE, y1 + _HIGH // 2), (x2, y2 + _HIGH // 2), (x1 + _WIDE + x2) // 2
    path = f"M{start[0]} {start[1]} C{middle} {start[1]} {middle} {end[1]} {end[0]} {end[1]}"
    label = f"t{turn}" if turn else ""
    return LineageWay(path, relation.split("_", maxsplit=1)[0], end[0] - 6, end[1] - 5, label)


def _spot_corner(spot: GraphSpot) -> tuple[int, int]:
    return 2 + spot.column * (_WIDE + _GAP_X), 2 + spot.row * (_HIGH + _GAP_Y)
