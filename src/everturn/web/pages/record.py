"""One message as captured: its record, its pictures, and its evidence: file, version, byte range, hash."""

from __future__ import annotations

from base64 import b64decode
from hashlib import sha256

from everturn.errors import NothingFound
from everturn.export.json_document import source_facts
from everturn.export.page.content import pictures_of
from everturn.model.archive import MessageRow, Session
from everturn.model.conversation import Message
from everturn.sessions.messages import Records
from everturn.web.request import Bytes, PageReply, WebRequest
from everturn.web.session_lines import title_of

_LONGEST = 400_000  # characters shown of a record


def draw(request: WebRequest) -> PageReply:
    session, text = request.session()
    row, record = captured_record(request, session, request.path["message"] - 1)
    message = _read_message(request, session, row, record)
    shown = request.clean.line(record).decode("utf-8", "replace")
    source = source_facts(request.store, session)
    values = {
        "session": session,
        "title": title_of(request, session, text),
        "row": row,
        "record": request.text(shown[:_LONGEST]),
        "cut": max(0, len(shown) - _LONGEST),
        "digest": sha256(record).hexdigest() if record else "",
        "masked": shown != record.decode("utf-8", "replace"),
        "words": _message_texts(request, message),
        "pictures": [picture_address(session.id, row.seq, one.name) for one in pictures_of(message.blocks)],
        "source": {name: request.line(str(value), 1000) for name, value in source.items()},
        "versions": len(source["versions"]),
        "last": session.n_messages,
    }
    return PageReply("record", values, f"Message {row.seq + 1}")


def draw_picture(request: WebRequest) -> Bytes:
    """Return a picture of a message. Raises NothingFound."""
    session, _ = request.session()
    row, record = captured_record(request, session, request.path["message"] - 1)
    for one in pictures_of(_read_message(request, session, row, record).blocks):
        if one.name == request.path["name"]:
            return Bytes(one.kind, b64decode(one.data + "=" * (-len(one.data) % 4)))
    raise NothingFound("there is no such picture in this message")


def picture_address(session: int, seq: int, name: str) -> str:
    """Return the address of a picture; `seq` is counted from 0."""
    return f"/s/{session}/m/{seq + 1}/picture/{name}"


def _read_message(request: WebRequest, session: Session, row: MessageRow, record: bytes) -> Message:
    return Records(request.store, request.sources, session, until=0).view(row, record)


def _message_texts(request: WebRequest, message: Message) -> list[tuple[str, str]]:
    """Return the texts of the message with their fields, up to the limit; the page of a session cuts long ones."""
    found, room = list[tuple[str, str]](), _LONGEST
    for block in message.blocks:
        if block.text and room > 0:
            text = request.text(block.text)[:room]
            found.append((block.kind if block.field in ("", "meta") else block.field.replace("_", " "), text))
            room -= len(text)
    return found


def captured_record(request: WebRequest, session: Session, seq: int) -> tuple[MessageRow, bytes]:
    """Return the row of a message and its bytes. Raises NothingFound."""
    row = next(request.store.messages(session.id, seq, seq), None)
    if row is None:
        has = f"session {session.native_id} has {session.n_messages} messages"
        raise NothingFound(f"{has}; there is no message {seq + 1}")
    return row, Records(request.store, request.sources, session, until=0).record(row)
