"""What a record is: a line that a container was written out as, a line or an element of an export.

    {"session": {…}}                                        what stays the same of a session; first in its file
    {"message": ROW, "parts": [ROW, …]}                     a message of a database, of a folder of small files
    {"session_message": ROW}                                the same, of the client's second generation
    {"error": {…}, "info": {"id", "time"}}                  how the message before it ended
    {"file": PATH, "text": …}                               another file that belongs to the session
    {"info": {…}, "parts": [{…}, …]}                        a message of an export

A ROW is a row of a table with its JSON in `data`, as it is in the database, or a file of that path: `{"file", "text"}`,
with `base64` instead of `text` where it is not UTF-8. So every file can be put back as it was.
"""

from __future__ import annotations

from typing import Any

from everturn.sources.linewise import Rec, listing, mapping
from everturn.sources.opencode.message import Built, build, failure, unknown
from everturn.sources.opencode.newer import translated
from everturn.sources.wholefile import decoded


def session_of(record: Rec) -> Rec:
    """What a record says about the session itself; empty when it is about something else."""
    if "session" in record:
        return mapping(record["session"])
    info = mapping(record.get("info"))
    return info if "parts" not in record and str(info.get("id")).startswith("ses_") else {}


def info_of(record: Rec) -> Rec:
    """Which message a record is about."""
    if "info" in record:
        return mapping(record["info"])
    if "message" in record:
        return _loaded(record["message"])
    return _loaded(record["session_message"]) if "session_message" in record else {}


def message_of(record: Rec) -> Built | None:
    """The message in a record; None when the record is known and holds none."""
    if isinstance(record.get("error"), dict) and "parts" not in record:
        return Built(failure(record["error"], info_of(record)), "error")
    if "session_message" in record:
        return _newer(mapping(record["session_message"]))
    if "parts" in record and ("info" in record or "message" in record):
        loaded = record["parts"] if "info" in record else list(map(_loaded, listing(record["parts"])))
        built = build(info_of(record), listing(loaded))
        return built if built.message.kind != "unknown" else Built(unknown(record), "?", False)
    if session_of(record) or "file" in record:
        return None
    return Built(unknown(record), "?", False)


def error_in(value: Rec) -> Built | None:
    """An error that was cut out of an export's message; None when it is something else."""
    return Built(failure(value, {}), "error") if value and set(value) <= {"name", "data"} else None


def _newer(row: Rec) -> Built | None:
    kind = row.get("type")
    found = translated(kind if isinstance(kind, str) else "", _loaded(row))
    return None if found is None else build(*found)


def _loaded(row: Any) -> Rec:
    """What a row or a file says. A row has the ids in columns of their own."""
    row = mapping(row)
    inside = row.get("data") if "data" in row else row.get("text")
    value = decoded(inside.encode("utf-8", "replace"))[0] if isinstance(inside, str) else inside
    if not isinstance(value, dict):
        return {}
    if "data" not in row:
        return value
    ids = {"id": row.get("id"), "sessionID": row.get("session_id")}
    return {"time": {"created": row.get("time_created")}, **value, **ids}
