"""Takes databases and folders of small files apart: each session becomes lines (see `records`).

The lines are the same each time for the same content. Those of a database grow at the end when a conversation goes on: what
changes all the time in a session's row is left out (the copy of the database has it), and messages that are done do not
change. The files of a folder are all kept exactly; those that change all the time stand at the end.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from everturn.sources import Member, SourceCandidate
from everturn.sources.foreign import word
from everturn.sources.linewise import Rec, mapping
from everturn.sources.opencode.find import is_early
from everturn.sources.wholefile import decode_item

if TYPE_CHECKING:
    from everturn.sources.database import DatabaseSnapshot

#: Columns and keys of a session that change while it goes on.
_RESTLESS = frozenset(
    "time_updated time_compacting time_archived cost tokens_input tokens_output tokens_reasoning tokens_cache_read "
    "tokens_cache_write summary_additions summary_deletions summary_files summary_diffs revert permission agent model "
    "share_url metadata time summary share".split()
)
_TABLES = frozenset(("session", "message", "part", "session_message"))
_encode = msgspec.json.Encoder().encode


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    """The sessions in a database, or the one in a folder."""
    if found.kind == "bundle":
        yield _bundle_member(found, path)
    else:
        yield from _database_members(path)


# databases --------------------------------------------------------------------------------------------------------------
def _database_members(path: Path) -> Iterator[Member]:
    from everturn.sources.database import open_snapshot

    with open_snapshot(path) as database:
        orders = {table: _order(set(database.columns(table))) for table in sorted(database.tables() & _TABLES)}
        if "session" not in orders:
            return
        for session in list(database.rows(f"SELECT * FROM session {orders['session']}")):
            native_id, parent = word(session.get("id")), word(session.get("parent_id"))
            if native_id:
                lines = _rows(database, orders, session)
                yield Member(native_id, lines, "subagent" if parent else "main", native_id, parent)


def _order(columns: set[str]) -> str:
    """Ids of messages and parts sort by time, those of sessions the other way round."""
    wanted = ["seq"] if "seq" in columns else ["time_created", "id"] if "directory" in columns else ["id"]
    known = [name for name in wanted if name in columns]
    return f"ORDER BY {', '.join(known)}" if known else ""


def _rows(database: DatabaseSnapshot, orders: dict[str, str], session: Rec) -> Iterator[bytes]:
    def of(table: str, key: str, value: Any) -> list[Rec]:
        query = f"SELECT * FROM {table} WHERE {key}=? {orders.get(table)}"
        return list(database.rows(query, value)) if table in orders else []

    native_id, seen = session["id"], set()
    yield _line(session={key: value for key, value in session.items() if key not in _RESTLESS})
    for row in of("message", "session_id", native_id):
        parts = of("part", "message_id", row.get("id"))
        seen.add(row.get("id"))
        yield _line(message=_verbatim_row(row), parts=[_verbatim_row(part) for part in parts])
        yield from _error_record(row.get("data"), row.get("id"))
    for row in of("session_message", "session_id", native_id):
        if row.get("id") not in seen:  # kept in the words of both generations
            yield _line(session_message=_verbatim_row(row))
            yield from _error_record(row.get("data"), row.get("id"))


def _verbatim_row(row: Rec) -> Rec:
    """A row with the JSON in it as it stands there, if that is JSON on one line."""
    data = row.get("data")
    if not isinstance(data, str) or "\n" in data or "\r" in data:
        return row
    raw = data.encode("utf-8", "surrogatepass")
    try:
        msgspec.json.decode(raw, type=Raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return row
    return {**row, "data": Raw(raw)}


# folders ----------------------------------------------------------------------------------------------------------------
def _bundle_member(found: SourceCandidate, path: Path) -> Member:
    about = mapping(decode_item(path.read_bytes())[0])
    parent = word(about.get("parentID"))
    return Member(
        found.native_id, _files(found.native_id, path, about), "subagent" if parent else "main", found.native_id, parent
    )


def _files(session: str, path: Path, about: Rec) -> Iterator[bytes]:
    early = is_early(path)
    top = path.parent.parent if early else path.parent.parent.parent
    root = top.parent if early else top
    steady = {key: value for key, value in about.items() if key not in _RESTLESS}
    yield _line(session={"id": session, **steady})
    for message in _json_files(top / "message" / session):
        folder = top / "part" / session / message.stem if early else top / "part" / message.stem
        file = _file(message, root)
        yield _line(message=file, parts=[_file(part, root) for part in _json_files(folder)])
        yield from _error_record(file.get("text"), message.stem)
    for other in (top / "todo" / path.name, top / "session_diff" / path.name, path):
        if other.is_file():
            yield _line(**_file(other, root))


def _json_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.json") if path.is_file()) if folder.is_dir() else []


def _file(path: Path, root: Path) -> Rec:
    raw = path.read_bytes()
    name = path.relative_to(root).as_posix()
    try:
        return {"file": name, "text": raw.decode()}
    except UnicodeDecodeError:
        return {"file": name, "base64": base64.b64encode(raw).decode()}


# both -------------------------------------------------------------------------------------------------------------------
def _error_record(data: Any, native_id: Any) -> Iterator[bytes]:
    """How a message ended, if that was not well: a record of its own, because it is the client who says it."""
    if not isinstance(data, str) or '"error"' not in data:
        return
    found = mapping(decode_item(data.encode("utf-8", "replace"))[0])
    if isinstance(found.get("error"), dict):
        yield _line(error=found["error"], info={"id": native_id, "time": found.get("time")})


def _line(**record: Any) -> bytes:
    return _encode(record) + b"\n"
