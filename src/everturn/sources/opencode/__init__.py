"""OpenCode: sessions in its database, in the folder of small files it had before, and in what it exports.

Read first: `find` (where they are), `records` (what a record is), `message` (a message with its parts), `reader`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everturn.model.conversation import Message
from everturn.sources import Found, Member, Reader, Source
from everturn.sources.opencode.find import NAME, find, roots, sniff
from everturn.sources.opencode.shapes import folder_in


def _reader(found: Found, state: bytes) -> Reader:
    from everturn.sources.opencode.reader import ConversationReader

    return ConversationReader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.opencode.view import view

    return view(record)


def _unpack(found: Found, path: Path) -> Iterator[Member]:
    from everturn.sources.opencode.unpacking import unpack

    return unpack(found, path)


SOURCE = Source(
    name=NAME,
    title="OpenCode",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=_view,
    workspace=folder_in,
    unpack=_unpack,
    is_database=True,
    private=('DELETE FROM "account"', 'DELETE FROM "credential"', 'DELETE FROM "session_share"'),
    option="opencode-dir",
    resume_command=lambda native_id: ["opencode", "--session", native_id],
)
