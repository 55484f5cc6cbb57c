"""Trails read by the questions: turn by turn, a fair sample of them, and where in the archive something was seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby

from msgspec import Struct

from everturn.errors import UnknownSession
from everturn.model.analytics import CLASS, INHERITED, Trail
from everturn.model.archive import Session
from everturn.model.words import ERROR_CLASSES
from everturn.store import Store

UNKNOWN_TOOL = "unknown_tool"


class TrailHandle(Struct, frozen=True):
    """Where to look: `everturn show SESSION --turn TURN`."""

    session: str  # native id
    turn: int  # counted from 1
    agent: str = ""


def tools_of(trail: Trail) -> Iterator[tuple[int, list[str]]]:
    """Turn by turn the tools called in it, in order; what a fork repeats is left out."""
    names = trail.names
    rows = zip(trail.turns, trail.tools, trail.outcomes, strict=True)
    own = ((turn, names[tool]) for turn, tool, outcome in rows if not outcome & INHERITED)
    for turn, calls in groupby(own, key=lambda row: row[0]):
        yield turn, [tool for _, tool in calls]


def failed_of(outcome: int) -> str:
    """The class of error of a call's outcome; empty when it did not fail."""
    return ERROR_CLASSES[outcome & CLASS]


class FailureTally:
    """How calls ended, by tool: for any number of trails."""

    def __init__(self) -> None:
        self._worked: set[str] = set()
        self._missing: dict[str, tuple[int, int]] = {}

    def add(self, trail: Trail) -> None:
        """The calls of one more session; what a fork repeats does not count."""
        for (tool, outcome), n in Counter(zip(trail.tools, trail.outcomes, strict=True)).items():
            if outcome & INHERITED:
                continue
            error, name = failed_of(outcome), trail.names[tool]
            if not error:
                self._worked.add(name)
            elif error == UNKNOWN_TOOL:
                before, sessions = self._missing.get(name, (0, 0))
                self._missing[name] = before + n, sessions + 1

    def working(self) -> frozenset[str]:
        """Tools that went well at least once."""
        return frozenset(self._worked)

    def missing(self) -> dict[str, tuple[int, int]]:
        """Tools that were said not to exist: calls and sessions."""
        return dict(self._missing)


def family_ids(store: Store, session: Session, subagents: bool) -> tuple[int, ...]:
    """The ids of a session: of all its editions, as an older one may own what newer ones repeat, and of its subagents."""
    names, found = [(session.agent, session.native_id)], dict[int, None]()
    for agent, name in names:
        editions = store.sessions_of(agent, name)
        found.update(dict.fromkeys(one.id for one in editions))
        links = store.links_to(name) if subagents else []
        for child in (store.session(link.session)[0] for link in links if link.relation == "subagent_of"):
            if child.agent == agent and (agent, child.native_id) not in names:
                names.append((agent, child.native_id))
    return tuple(found)


def handles(store: Store, places: Iterable[tuple[int, int]]) -> tuple[TrailHandle, ...]:
    """Places (session, turn) as people can look them up."""
    return tuple(handle for session, turn in places if (handle := _handle(store, session, turn)) is not None)


def find_examples(
    trails: Iterable[tuple[int, Trail]], fits: Callable[[list[str]], bool], needs: Iterable[str], most: int = 3
) -> list[tuple[int, int]]:
    """The first few (session, turn) whose tools fit, one per session; only trails with all the tools needed are read."""
    wanted = set(needs)
    found: list[tuple[int, int]] = []
    for session, trail in trails:
        if len(found) >= most:
            break
        if wanted <= set(trail.names):
            found += [(session, turn) for turn, tools in tools_of(trail) if fits(tools)][:1]
    return found


def _handle(store: Store, session: int, turn: int) -> TrailHandle | None:
    try:
        row = store.session(session)[0]
    except UnknownSession:  # it is gone meanwhile
        return None
    return TrailHandle(row.native_id, turn + 1, row.agent)
