"""One record's bytes → its message, for whoever shows or exports it."""

from __future__ import annotations

from everturn.model.conversation import Message
from everturn.sources.codex.events import open_record
from everturn.sources.codex.message import build, unknown
from everturn.sources.codex.screenlog import view_log
from everturn.sources.linewise import RecordPlace, single_record


def view(raw: bytes) -> Message | None:
    """The message of a record, judged by itself; None when there is none in these bytes.

    Asked about a record that holds no message it gives the words of it, as of one that is not known: in a file of the
    other kind that is what the record was.
    """
    record, place = single_record(raw), RecordPlace(0, len(raw))
    if record is None:
        return view_log(raw, None)
    logged = view_log(raw, record) if "dir" in record and "ts" in record else None
    event = open_record(record)
    return logged or build(event, place) or unknown(event, place)
