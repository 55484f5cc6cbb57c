"""Terminal recordings: what a full-screen agent drew, read as turns.

A recording is a container: its bytes are kept, and each conversation seen in it is written out as lines, one for each thing
that was drawn, with the lines of the clean transcript and the bytes of the recording it rests on. Read first: `transcript`
(what a recording comes down to), `screen` (the emulator), `stitch` (screens into a transcript), `dialects` (whose screens
they are), `talk` (what was said), `written` (a talk as lines).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everturn.model.conversation import Message
from everturn.sources import Found, Member, Places, Reader, Source

NAME = "terminal"


def roots(places: Places) -> list[Path]:
    """Only the folders the user names: nobody knows where people keep recordings."""
    return [folder.absolute() for folder in places.extra.get(NAME, ()) if folder.is_dir()]


def find(root: Path) -> Iterator[Found]:
    """Every recording below a folder, known by its content."""
    from everturn.sources.terminal.written import recordings_below

    return recordings_below(root)


def sniff(path: Path, head: bytes) -> Found | None:
    """Is it a recording?"""
    from everturn.sources.terminal.recordings import recognise

    return Found(path, "container") if recognise(head, path.name) is not None else None


def _reader(found: Found, state: bytes) -> Reader:
    from everturn.sources.terminal.written import TalkReader

    return TalkReader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.terminal.written import view

    return view(record)


def _unpack(found: Found, path: Path) -> Iterator[Member]:
    from everturn.sources.terminal.written import unpack

    return unpack(found, path)


def _workspace(head: bytes) -> str:
    from everturn.sources.terminal.written import workspace

    return workspace(head)


SOURCE = Source(
    name=NAME,
    title="Terminal recordings",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=_view,
    workspace=_workspace,
    unpack=_unpack,
    option="terminal-dir",
)
