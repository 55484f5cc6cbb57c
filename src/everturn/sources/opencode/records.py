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
from everturn.sources.opencode.message import OpencodeMessage, build, failure, unknown
from everturn.sources.opencode.newer import translate_row
from everturn.sources.wholefile import decode_item


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
        return _load_row(record["message"])
    return _load_row(record["session_message"]) if "session_message" in record else {}


def message_of(record: Rec) -> OpencodeMessage | None:
    """The message in a record; None when the record is known and holds none."""
    if isinstance(record.get("error"), dict) and "parts" not in record:
        return OpencodeMessage(failure(record["error"], info_of(record)), "error")
    if "session_message" in record:
        return _newer_message(mapping(record["session_message"]))
    if "parts" in record and ("info" in record or "message" in record):
        loaded = record["parts"] if "info" in record else list(map(_load_row, listing(record["parts"])))
        built = build(info_of(record), listing(loaded))
        return built if built.message.kind != "unknown" else OpencodeMessage(unknown(record), "?", False)
    if session_of(record) or "file" in record:
        return None
    return OpencodeMessage(unknown(record), "?", False)


def error_in(value: Rec) -> OpencodeMessage | None:
    """An error that was cut out of an export's message; None when it is something else."""
    return OpencodeMessage(failure(value, {}), "error") if value and set(value) <= {"name", "data"} else None


def _newer_message(row: Rec) -> OpencodeMessage | None:
    kind = row.get("type")
    found = translate_row(kind if isinstance(kind, str) else "", _load_row(row))
    return None if found is None else build(*found)


def _load_row(row: Any) -> Rec:
    """What a row or a file says. A row has the ids in columns of their own."""
    row = mapping(row)
    inside = row.get("data") if "data" in row else row.get("text")
    value = decode_item(inside.encode("utf-8", "replace"))[0] if isinstance(inside, str) else inside
    if not isinstance(value, dict):
        return {}
    if "data" not in row:
        return value
    ids = {"id": row.get("id"), "sessionID": row.get("session_id")}
    return {"time": {"created": row.get("time_created")}, **value, **ids}
