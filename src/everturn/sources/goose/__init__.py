"""Goose: a database of all sessions, and one file of lines per session in versions before 1.10.

Read first: `find` (where they are), `content` (what a message holds), `database` (taking the database apart), `reader`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everturn.model.conversation import Message
from everturn.sources import Found, Member, Reader, Source
from everturn.sources.goose.find import NAME, find, resume_command, roots, sniff, workspace


def _reader(found: Found, state: bytes) -> Reader:
    from everturn.sources.goose.reader import reader

    return reader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.goose.reader import view

    return view(record)


def _unpack(found: Found, path: Path) -> Iterator[Member]:
    from everturn.sources.goose.database import unpack

    return unpack(found, path)


SOURCE = Source(
    name=NAME,
    title="Goose",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=_view,
    workspace=workspace,
    unpack=_unpack,
    is_database=True,
    option="goose-dir",
    resume_command=resume_command,
)
