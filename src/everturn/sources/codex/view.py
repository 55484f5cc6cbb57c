"""One record's bytes → its message, for whoever shows or exports it."""

from __future__ import annotations

from everturn.model.conversation import Message
from everturn.sources.codex.events import opened
from everturn.sources.codex.message import build
from everturn.sources.codex.screenlog import view_log
from everturn.sources.linewise import Place, alone


def view(raw: bytes) -> Message | None:
    """The message of a record, judged by itself; None when it holds none."""
    record = alone(raw)
    if record is None or ("dir" in record and "ts" in record):
        return view_log(raw, record)
    return build(opened(record), Place(0, len(raw)))
