"""Cursor: transcripts of its agent, the editor's databases, and Markdown exports.

- `~/.cursor/projects/<slug>/agent-transcripts/<id>/<id>.jsonl`: what was said and called, without what calls gave back.
- `state.vscdb`: databases that hold composer and chat conversations, the newer ones bubble by bubble.
- Markdown, as the editor exports it.

Read first: `find` (where they are), `database` (taking a database apart), `said` (transcripts), `bubbles` (what is in the
databases), `export` (Markdown), `reader`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everturn.model.conversation import Message
from everturn.sources import Found, Member, Reader, Source
from everturn.sources.cursor.find import NAME, find, roots, sniff, workspace


def _reader(found: Found, state: bytes) -> Reader:
    from everturn.sources.cursor.reader import reader

    return reader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.cursor.view import view

    return view(record)


def _unpack(found: Found, path: Path) -> Iterator[Member]:
    from everturn.sources.cursor.database import unpack

    return unpack(found, path)


SOURCE = Source(
    name=NAME,
    title="Cursor",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=_view,
    workspace=workspace,
    unpack=_unpack,
    is_database=True,
    private=("DELETE FROM ItemTable WHERE key LIKE 'cursorAuth/%' OR key LIKE 'secret:%' OR key LIKE '%Token'",),
    option="cursor-dir",
)
