"""One record's bytes → its message, for whoever shows or exports it."""

from __future__ import annotations

from everturn.model.conversation import Message
from everturn.sources.linewise import single_record
from everturn.sources.opencode.message import unknown
from everturn.sources.opencode.records import error_in, message_of
from everturn.sources.wholefile import decode_item


def view(record: bytes) -> Message | None:
    """The message of a line, of an element of an export, or of a stretch of a rendered transcript."""
    value = None
    if record.lstrip()[:1] in (b"{", b"[", b'"'):
        value = decode_item(record)[0]
        value = single_record(record) if value is None else value
    if value is None:
        from everturn.sources.opencode.rendered import view_text

        return view_text(record)
    built = (error_in(value) or message_of(value)) if isinstance(value, dict) else None
    if built is None:
        return None if isinstance(value, dict) else unknown(value)
    return built.message
