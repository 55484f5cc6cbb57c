"""One conversation, and every place OpenCode may have put it: database, folder of small files, exports.

`CONVERSATION` has what real ones have: attachments, parallel calls, a subagent, a command run by hand, a compaction, an
abort, an error of the provider, a tool still at work.
"""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

Rec = dict[str, Any]

PARENT = "ses_4255806ffffeAAAAAAAAAAAAAA"
CHILD = "ses_42557fd3bffeBBBBBBBBBBBBBB"
BEGAN = 1_768_900_000_000
FOLDER = "/home/ann/otter"


def info(session: str, title: str, parent: str = "") -> Rec:
    """The facts of a session."""
    found: Rec = {
        "id": session, "slug": "quiet-otter", "projectID": "p1", "directory": FOLDER, "title": title,
        "version": "1.18.0", "summary": {"additions": 1, "deletions": 0, "files": 1},
        "time": {"created": BEGAN, "updated": BEGAN + 90_000},
    }  # fmt: skip
    return found | ({"parentID": parent} if parent else {})


def user(n: int, *parts: Rec, **more: Any) -> Rec:
    """A message of the user, `n` seconds after the beginning."""
    about = {"id": f"msg_{n:06}", "role": "user", "time": {"created": BEGAN + n * 1000}, "agent": "build"}
    return {"info": about | {"model": {"providerID": "p", "modelID": "m-1"}} | more, "parts": list(parts)}


def assistant(n: int, *parts: Rec, asked: int = 0, **more: Any) -> Rec:
    """A step of the model that took 700 ms."""
    begin = BEGAN + n * 1000
    about = {
        "id": f"msg_{n:06}", "role": "assistant", "parentID": f"msg_{asked:06}", "mode": "build", "agent": "build",
        "path": {"cwd": FOLDER, "root": FOLDER}, "modelID": "m-1", "providerID": "p", "cost": 0.01,
        "tokens": {"input": 100, "output": 7, "reasoning": 3, "cache": {"read": 50, "write": 5}},
        "time": {"created": begin, "completed": begin + 700}, "finish": "stop",
    }  # fmt: skip
    about |= more
    return {"info": {key: value for key, value in about.items() if value is not None}, "parts": list(parts)}


def text(words: str, **more: Any) -> Rec:
    """A text."""
    return {"type": "text", "text": words, **more}


def tool(name: str, call_id: str, given: Rec, said: str, status: str = "completed", **metadata: Any) -> Rec:
    """Return a call that took 40 ms, with its result."""
    state: Rec = {"status": status, "input": given, "time": {"start": BEGAN + 500, "end": BEGAN + 540}}
    if status == "error":
        state["error"] = said
    elif status == "completed":
        state |= {"output": said, "title": name, "metadata": metadata}
    else:
        state |= {"metadata": metadata, "time": {"start": BEGAN + 500}}
    return {"type": "tool", "tool": name, "callID": call_id, "state": state}


STEP = {"type": "step-start", "snapshot": "aaaa"}
DONE = {"type": "step-finish", "reason": "stop", "cost": 0.01, "tokens": {"input": 100, "output": 7, "reasoning": 3}}
NOTHING = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}

CONVERSATION: list[Rec] = [
    user(
        1,
        text("Look at @notes.md for the walrus"),
        {"type": "file", "mime": "text/plain", "filename": "notes.md", "url": "file:///home/ann/otter/notes.md"},
        text("Called the Read tool with notes.md", synthetic=True),
        text("<content>plankton</content>", synthetic=True),
    ),
    assistant(
        2, STEP, {"type": "reasoning", "text": "First the tests.", "time": {"start": BEGAN}}, text("I run both."),
        tool("bash", "call_a", {"command": "make test", "description": "Run"}, "1 failed", exit=2),
        tool("read", "call_b", {"filePath": "/home/ann/otter/none.py"}, "File not found: none.py", "error"),
        tool("write", "call_c", {"filePath": "/home/ann/otter/a.py", "content": "x = 1\n"}, "Wrote file successfully.",
             filepath="/home/ann/otter/a.py", exists=False),
        DONE, {"type": "patch", "hash": "bbbb", "files": ["/home/ann/otter/a.py"]}, asked=1, finish="tool-calls",
    ),
    assistant(
        3, STEP,
        tool("apply_patch", "call_d", {"patchText": "*** Begin Patch\n*** End Patch"}, "Success.", files=[
            {"filePath": "/home/ann/otter/b.py", "type": "add"}, {"filePath": "/home/ann/otter/c.py", "type": "delete"}]),
        tool("task", "call_e", {"description": "look", "prompt": "Find the seal", "subagent_type": "general"},
             "It is in sea.py", sessionId=CHILD),
        DONE, asked=1, finish="tool-calls",
    ),
    user(4, text("and hurry")),
    assistant(5, STEP, text("All is well."), DONE, asked=4),
    user(6, text("The following tool was executed by the user", synthetic=True)),
    assistant(7, tool("bash", "call_f", {"command": "git status"}, "clean"), asked=6, tokens=NOTHING, finish=None),
    user(8, {"type": "compaction", "auto": True}),
    assistant(9, STEP, text("So far: the walrus was found."), DONE, asked=8, summary=True, mode="compaction"),
    user(10, text("Continue if you have next steps", synthetic=True)),
    assistant(11, STEP, text("Half an ans"), asked=10, tokens=NOTHING, finish=None,
              error={"name": "MessageAbortedError", "data": {"message": "Aborted"}}),
    user(12, {"type": "subtask", "prompt": "Review the penguin", "description": "review", "agent": "general",
              "command": "review"}),
    assistant(13, STEP, asked=12, tokens=NOTHING, finish=None,
              error={"name": "APIError", "data": {"message": "Rate limit", "statusCode": 429}}),
    user(14, text("again"), {"type": "hologram", "shape": "narwhal"}),
    assistant(15, STEP, tool("bash", "call_g", {"command": "sleep 9"}, "", "running"), asked=14, finish=None,
              tokens=NOTHING, time={"created": BEGAN + 15_000}),
]  # fmt: skip

ERRAND: list[Rec] = [user(16, text("Find the seal")), assistant(17, STEP, text("It is in sea.py"), DONE, asked=16)]

SESSIONS: list[tuple[Rec, list[Rec]]] = [
    (info(PARENT, "Walrus hunt"), CONVERSATION),
    (info(CHILD, "look (@general subagent)", PARENT), ERRAND),
]


def with_ids(session: str, messages: list[Rec]) -> list[Rec]:
    """The messages as an export has them: every part with its ids."""
    return [
        {
            "info": {**one["info"], "sessionID": session},
            "parts": [
                {**part, "id": f"prt_{one['info']['id'][4:]}_{n:02}", "sessionID": session, "messageID": one["info"]["id"]}
                for n, part in enumerate(one["parts"])
            ],
        }
        for one in messages
    ]  # fmt: skip


def export(about: Rec, messages: list[Rec]) -> bytes:
    """Return the output of `opencode export`."""
    return json.dumps({"info": about, "messages": with_ids(about["id"], messages)}, indent=2).encode()


def lines(about: Rec, messages: list[Rec]) -> bytes:
    """The same messages, one per line."""
    return b"".join(json.dumps(one).encode() + b"\n" for one in with_ids(about["id"], messages))


def storage(root: Path, early: bool = False) -> Path:
    """A data folder with all sessions in small files; the folder."""
    top = root / "project" / "otter" / "storage" / "session" if early else root / "storage"
    for about, messages in SESSIONS:
        session = about["id"]
        put(top / ("info" if early else "session/p1") / f"{session}.json", about)
        for one in with_ids(session, messages):
            native_id = one["info"]["id"]
            put(top / "message" / session / f"{native_id}.json", one["info"])
            folder = top / "part" / session / native_id if early else top / "part" / native_id
            for part in one["parts"]:
                put(folder / f"{part['id']}.json", part)
    if not early:
        put(top / "todo" / f"{PARENT}.json", [{"content": "find it", "status": "pending"}])
        put(top / "session_diff" / f"{PARENT}.json", [])
    return root


def put(path: Path, value: Any) -> None:
    """Write a file as the client does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False), encoding="utf-8")


SCHEMA = """
    CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, title TEXT,
        version TEXT, cost REAL, revert TEXT, time_created INTEGER, time_updated INTEGER);
    CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
    CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER,
        data TEXT);
    CREATE TABLE session_message(id TEXT PRIMARY KEY, session_id TEXT, type TEXT, seq INTEGER, time_created INTEGER,
        time_updated INTEGER, data TEXT);
"""


def database(path: Path, sessions: list[tuple[Rec, list[Rec]]]) -> sqlite3.Connection:
    """A database with sessions, still open."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.executescript(SCHEMA)
    for about, messages in sessions:
        row = (about["id"], "p1", about.get("parentID"), "s", FOLDER, about["title"], "1.18.0", 0.5, None, BEGAN, BEGAN)
        connection.execute("INSERT INTO session VALUES (?,?,?,?,?,?,?,?,?,?,?)", row)
        insert(connection, about["id"], messages)
    return connection


def insert(connection: sqlite3.Connection, session: str, messages: list[Rec]) -> None:
    """Add messages. What has a column is not in the JSON."""
    columns = ("id", "sessionID", "messageID")
    for one in with_ids(session, messages):
        native_id, created = one["info"]["id"], one["info"]["time"]["created"]
        data = json.dumps({key: value for key, value in one["info"].items() if key not in columns})
        connection.execute("INSERT INTO message VALUES (?,?,?,?,?)", (native_id, session, created, created, data))
        for part in one["parts"]:
            data = json.dumps({key: value for key, value in part.items() if key not in columns})
            row = (part["id"], native_id, session, created, created, data)
            connection.execute("INSERT INTO part VALUES (?,?,?,?,?,?)", row)
    connection.commit()
