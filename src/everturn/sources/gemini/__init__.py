"""Gemini CLI: sessions in `~/.gemini/tmp/<project>/chats`, one JSON document each, since 2026 patch-style lines.

Read first: `find` (where files are), `message` (a record by itself), `calls`, `reader` (records together).
"""

from __future__ import annotations

from everturn.model.conversation import Message
from everturn.sources import Found, Reader, Source
from everturn.sources.gemini.find import NAME, find, resume_command, retention, roots, sniff, workspace


def _reader(found: Found, state: bytes) -> Reader:
    from everturn.sources.gemini.reader import reader

    return reader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.gemini.view import view

    return view(record)


SOURCE = Source(
    name=NAME,
    title="Gemini CLI",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=_view,
    workspace=workspace,
    option="gemini-dir",
    retention=retention,
    resume_command=resume_command,
)
