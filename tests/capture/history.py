"""A tiny history on disk for the tests of capture: one line per call, and a job to take it in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from everturn.capture.intake import SyncJob, SyncReport
from everturn.capture.policy import Policy
from everturn.capture.sync import sync_all
from everturn.model.archive import Session
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import IndexQuery, Store

FORMAT = "claude_code"  # capture knows no format; these tests must write some
SID = "11111111-2222-4333-8444-555555555555"
OTHER = "99999999-2222-4333-8444-555555555555"
SOURCES = {FORMAT: all_sources()[FORMAT]}
WORKSPACE = "/home/ann/shop"


class History:
    """A config folder with one project in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.project = root / "projects" / "-home-ann-shop"
        self.project.mkdir(parents=True)
        self.n = 0

    def file(self, sid: str = SID) -> Path:
        return self.project / f"{sid}.jsonl"

    def line(self, kind: str, content: Any, sid: str = SID, cwd: str = WORKSPACE, **more: Any) -> bytes:
        self.n += 1
        event: dict[str, Any] = {
            "parentUuid": None, "isSidechain": False, "userType": "external", "cwd": cwd, "sessionId": sid,
            "version": "2.1.50", "gitBranch": "main", "type": kind,
            "message": {"role": kind, "content": content},
            "uuid": f"00000000-0000-4000-8000-{self.n:012d}",
            "timestamp": f"2026-03-01T10:{self.n // 60 % 60:02d}:{self.n % 60:02d}.000Z",
        }  # fmt: skip
        if kind == "assistant":
            event["message"] |= {
                "id": f"msg_{self.n}",
                "model": "model-1",
                "type": "message",
                "usage": {"input_tokens": 3, "output_tokens": 2},
            }
        event["message"] |= more.pop("message", {})
        return json.dumps(event | more, ensure_ascii=False).encode() + b"\n"

    def turn(self, ask: str, reply: str, sid: str = SID, **more: Any) -> bytes:
        return self.line("user", ask, sid, **more) + self.line(
            "assistant", [{"type": "text", "text": reply}], sid, **more
        )

    def tool_turn(self, ask: str, command: str, output: str, sid: str = SID) -> bytes:
        call = f"toolu_{self.n}"
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
        back = {"type": "tool_result", "tool_use_id": call, "content": output}
        return self.line("user", ask, sid) + self.line("assistant", [use], sid) + self.line("user", [back], sid)

    def write(self, data: bytes, sid: str = SID) -> Path:
        self.file(sid).write_bytes(data)
        return self.file(sid)

    def grow(self, data: bytes, sid: str = SID) -> None:
        with self.file(sid).open("ab") as file:
            file.write(data)

    def fork(self, data: bytes, sid: str, old: str = SID) -> bytes:
        return data.replace(old.encode(), sid.encode())


def ticking(start: int = 1_772_000_000_000) -> Callable[[], int]:
    """A clock that is one second later each time it is asked."""
    moment = [start]

    def now() -> int:
        moment[0] += 1000
        return moment[0]

    return now


def job(store: Store, history: History, policy: Policy | None = None, **more: Any) -> SyncJob:
    places = SearchPlaces(history.root / "no-home", {}, "linux", {FORMAT: (history.root,)})
    more.setdefault("clock", ticking())
    return SyncJob(store, SOURCES, places, policy or Policy(), "box", "ann", **more)


def run(store: Store, history: History, policy: Policy | None = None, **more: Any) -> SyncReport:
    return sync_all(job(store, history, policy, **more))


def sessions(store: Store, sid: str = SID) -> list[Session]:
    return store.sessions_of(FORMAT, sid)


def current(store: Store, sid: str = SID) -> Session:
    (one,) = [row for row in sessions(store, sid) if row.state == "current"]
    return one


def raw(store: Store, path: Path, number: int | None = None) -> bytes:
    row = store.file("box", str(path))
    assert row is not None
    version = row[1]
    if number is not None:
        (version,) = [one for one in store.versions(row[0].id) if one.number == number]
    return store.read_raw(version.id, 0, version.size)


def hits(store: Store, *words: str) -> list[tuple[str, int]]:
    found = store.search(IndexQuery(tuple(((word,),) for word in words), limit=100))
    return [(store.session(hit.session)[0].native_id, hit.seq) for hit in found]


def everything(store: Store) -> Iterator[Any]:
    """Every derived row, for comparisons."""
    for file, _ in store.files():
        for version in store.versions(file.id):
            yield version.id, version.parsed, version.lines, version.glued
            yield sorted((c.type, c.client, c.disposition, c.n) for c in store.census(version.id))
            yield store.problems(version.id)
            for session in store.sessions_in(version.id):
                yield session, store.session(session.id)[1]
                yield list(store.messages(session.id))
                yield store.turns(session.id)
                yield store.steps(session.id)
                yield store.calls(session.id)
                yield store.artifacts(session.id)
                yield sorted(store.links(session.id), key=repr)
