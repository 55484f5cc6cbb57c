"""Takes the database apart: each session becomes lines, a head and then its messages in order.

The head holds what does not change as a session goes on, so that its lines only grow. Counters of tokens, which change with
every message and cannot be told apart by response, are in the database itself, which is kept beside.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from everturn.sources import Member, SourceCandidate
from everturn.sources.database import DatabaseSnapshot, Row, open_snapshot

_HEAD_COLUMNS = (
    "id name description session_type working_dir created_at schedule_id recipe_json user_recipe_values_json provider_name "
    "model_config_json"
).split()
_MESSAGE = "id message_id role created_timestamp tokens content_json metadata_json".split()
_NUMBERS = ("id", "created_timestamp", "tokens")
_SUBAGENT = "sub_agent"


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    """Every session in the database."""
    with open_snapshot(path) as database:
        head = [name for name in _HEAD_COLUMNS if name in database.columns("sessions")]
        message = [name for name in _MESSAGE if name in database.columns("messages")]
        if "id" not in head or "session_id" not in database.columns("messages"):
            return
        for row in list(database.rows(f"SELECT {_columns(head)} FROM sessions ORDER BY id")):
            name = str(row["id"])
            kind = "subagent" if _plain_text(row.get("session_type")) == _SUBAGENT else "main"
            yield Member(name, _lines(database, row, message), kind, name)


def _lines(database: DatabaseSnapshot, session: Row, columns: list[str]) -> Iterator[bytes]:
    yield _line({"session": session["id"], **session})
    sql = f"SELECT {_columns(columns)} FROM messages WHERE session_id=? ORDER BY id"
    for row in database.rows(sql, session["id"]):
        yield _line(row)


def _columns(names: list[str]) -> str:
    """Texts as bytes: one that is not UTF-8 would be refused."""
    return ",".join(name if name in _NUMBERS else f"CAST({name} AS BLOB) AS {name}" for name in names)


def _line(row: Row) -> bytes:
    """One row; what is JSON in it stays as it is."""
    value = {
        key.removesuffix("_json"): _raw_json(item) if key.endswith("_json") else _plain_text(item)
        for key, item in row.items()
    }
    return msgspec.json.encode({key: item for key, item in value.items() if item is not None}) + b"\n"


def _raw_json(raw: Any) -> Any:
    if not isinstance(raw, bytes) or b"\n" in raw:
        return _plain_text(raw)
    try:
        msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _plain_text(raw)
    return msgspec.Raw(raw)


def _plain_text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
