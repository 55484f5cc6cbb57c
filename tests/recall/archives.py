"""Small archives for the tests of reading: rows put in by hand, or transcripts taken in by a real sync."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from everturn.capture.policy import Policy
from everturn.model.archive import Session, SourceFile, Version
from everturn.sessions.lookup import resolve_session
from everturn.store.contract import Store
from tests.capture.history import SID, History, run

AGENT = "claude_code"


def put(store: Store, native_id: str, kind: str = "main", **columns: Any) -> Session:
    """A session without messages, in a file of its own."""
    path = columns.pop("path", f"/transcripts/{native_id}")
    with store.write():
        known = store.file("box", path)
        row = SourceFile(format=AGENT, machine="box", path=path, kind=kind, native_id=native_id)
        source = known[0].id if known else store.add_file(row)
        number = len(store.versions(source)) + 1 if known else 1
        version = store.add_version(Version(source=source, number=number))
        session = store.open_session(
            Session(agent=columns.pop("agent", AGENT), native_id=native_id, version=version, kind=kind)
        )
        if columns:
            store.set_session(session.id, **columns)
    return store.session(session.id)[0]


class Archive:
    """A history on disk and the store it is taken into."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.history = History(folder)

    def take_in(self, *pieces: bytes, sid: str = SID, policy: Policy | None = None) -> Session:
        """Write a transcript, sync, and give back its session."""
        if pieces:
            self.history.write(b"".join(pieces), sid)
        run(self.store, self.history, policy)
        return resolve_session(self.store, sid)

    def use(self, name: str, call: str, message: str = "", **given: Any) -> bytes:
        """A tool call; those with the same message id are parallel."""
        block = {"type": "tool_use", "id": call, "name": name, "input": given}
        return self.history.line("assistant", [block], message={"id": message} if message else {})

    def back(self, call: str, output: Any, failed: bool = False, **outcome: Any) -> bytes:
        """The result of a tool call."""
        block = {"type": "tool_result", "tool_use_id": call, "content": output, "is_error": failed}
        more: dict[str, Any] = {"toolUseResult": outcome} if outcome else {}
        return self.history.line("user", [block], **more)

    def subagent(self, name: str, *pieces: bytes, sid: str = SID) -> None:
        """A transcript of an agent that a session started."""
        folder = self.history.project / sid / "subagents"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"agent-{name}.jsonl").write_bytes(b"".join(pieces))

    def busy_turn(self, ask: str) -> bytes:
        """A turn with parallel calls, a failure, a diff and a subagent, which is written too."""
        self.subagent(
            "helper",
            self.helper("helper", "user", "look for it"),
            self.helper("helper", "assistant", [{"type": "text", "text": "found it in b.py"}]),
        )
        pieces = (
            self.history.line("user", ask),
            self.use("Read", "a", "m1", file_path="/home/ann/shop/a.py"),
            self.use("Bash", "b", "m1", command="make test"),
            self.back("a", "x = 1"),
            self.back("b", "Error: it broke", failed=True),
            self.use("Edit", "c", file_path="/home/ann/shop/a.py", old_string="x = 1", new_string="x = 2"),
            self.back("c", "done"),
            self.use("Task", "d", prompt="look for it"),
            self.back("d", "it is in b.py", agentId="helper"),
            self.history.line("assistant", [{"type": "text", "text": "**done** with `a.py`"}]),
        )
        return b"".join(pieces)

    def helper(self, name: str, kind: str, content: Any, sid: str = SID) -> bytes:
        """A record of such a transcript."""
        return self.history.line(kind, content, sid, isSidechain=True, agentId=name)
