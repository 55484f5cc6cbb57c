"""Sessions that hang together, as a graph: gathered from the statements they make about each other, and laid out.

Elders stand left of what came from them. Gathered outwards from one session and bounded: a family of thousands of subagents
is shown as far as there is room, and says so.
"""

from __future__ import annotations

from collections import deque

from msgspec import Struct

from everturn.derive.times import iso
from everturn.model.archive import Session
from everturn.recall.lineage import Relative, lineage
from everturn.recall.marks import marks_of
from everturn.web import schemas
from everturn.web.asking import WebRequest
from everturn.web.listing import title_of

MOST_NODES = 60


class LineageGraph(Struct):
    """Nodes in the order they were found, and the numbers of those that are in the archive."""

    nodes: list[schemas.NodeJson]
    edges: list[schemas.EdgeJson]
    numbers: dict[str, int]  # 0 where it is not in the archive
    left_out: int = 0


class GraphSpot(Struct, frozen=True):
    """Where a node stands: its generation and its row."""

    column: int
    row: int


def related_sessions(asked: WebRequest, session: Session) -> LineageGraph:
    """Everything that hangs together with a session, as far as there is room."""
    graph = LineageGraph([_make_node(asked, session)], [], {session.native_id: session.id})
    todo = deque([session])
    while todo:
        current = todo.popleft()
        kin = lineage(asked.store, current)
        pairs = [(one, True) for one in kin.ancestors] + [(one, False) for one in (*kin.forks, *kin.children)]
        elder = current.native_id
        for one, is_elder in pairs:
            if one.native_id not in graph.numbers and not _add_relative(asked, graph, one, todo):
                continue
            if is_elder:
                _add_edge(graph, elder, one.native_id, one)
                elder = one.native_id if one.relation != "continues" else elder
            else:
                _add_edge(graph, one.native_id, current.native_id, one)
    return graph


def _add_relative(asked: WebRequest, graph: LineageGraph, one: Relative, todo: deque[Session]) -> bool:
    if len(graph.nodes) >= MOST_NODES:
        graph.left_out += 1
        return False
    if one.session is None:
        name = asked.line(one.native_id.rpartition("/")[2] or one.native_id, 60)
        graph.nodes.append(schemas.NodeJson(one.native_id, name, "", "", False, None, 0, 0))
        graph.numbers[one.native_id] = 0
    else:
        graph.nodes.append(_make_node(asked, one.session))
        graph.numbers[one.native_id] = one.session.id
        todo.append(one.session)
    return True


def _add_edge(graph: LineageGraph, younger: str, elder: str, one: Relative) -> None:
    known = {(edge.younger, edge.elder) for edge in graph.edges}
    if younger != elder and (younger, elder) not in known:
        turn = one.call.turn + 1 if one.call is not None else None
        graph.edges.append(schemas.EdgeJson(younger, elder, one.relation, turn))


def _make_node(asked: WebRequest, session: Session) -> schemas.NodeJson:
    text = asked.store.session(session.id)[1]
    title = title_of(asked, session, text, marks_of(asked.store, session))
    started = iso(session.started) or None
    compacted = _count_compactions(asked, session)
    return schemas.NodeJson(
        session.native_id, title, session.agent, session.kind, True, started, session.n_turns, compacted
    )


def _count_compactions(asked: WebRequest, session: Session) -> int:
    """How often its context was compacted. Looked up once per state of the session: it takes all its turns."""

    def look() -> int:
        return sum(bool(turn.compacted) for turn in asked.store.turns(session.id))

    return asked.site.until_it_grows("compactions", session, look)


# where they stand -----------------------------------------------------------------------------------------------------
def lay_out_graph(graph: LineageGraph) -> dict[str, GraphSpot]:
    """A place for each node: behind all its elders, families together."""
    elders: dict[str, list[str]] = {}
    younger: dict[str, list[str]] = {}
    for edge in graph.edges:
        elders.setdefault(edge.younger, []).append(edge.elder)
        younger.setdefault(edge.elder, []).append(edge.younger)
    by_age = sorted(graph.nodes, key=lambda node: (node.started or "", node.id))
    names = [node.id for node in by_age]
    spots: dict[str, GraphSpot] = {}
    row = 0
    for name in sorted(names, key=lambda name: bool(elders.get(name))):  # those without elders first
        if name not in spots:
            row = _place_family(name, 0, row, younger, spots)
    return spots


def _place_family(name: str, column: int, row: int, younger: dict[str, list[str]], spots: dict[str, GraphSpot]) -> int:
    """Place a node and what came from it; the first row that is free then."""
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
