"""Terminal recordings: what a full-screen agent drew, read as turns.

A recording is a container: its bytes are kept, and each conversation seen in it is written out as lines, one for each thing
that was drawn, with the lines of the clean transcript and the bytes of the recording it rests on. Read first: `transcript`
(what a recording comes down to), `screen` (the emulator), `stitch` (screens into a transcript), `dialects` (whose screens
they are), `talk` (what was said), `written` (a talk as lines).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everturn.sources.contract import Source, SourceCandidate, lazy_import, named_folders

NAME = "terminal"


def find(root: Path) -> Iterator[SourceCandidate]:
    """Every recording below a folder, known by its content."""
    from everturn.sources.terminal.reader import find_recordings

    return find_recordings(root)


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """Is it a recording?"""
    from everturn.sources.terminal.recordings import recognise_recording

    return SourceCandidate(path, "container") if recognise_recording(head, path.name) is not None else None


SOURCE = Source(
    name=NAME,
    title="Terminal recordings",
    parser=1,
    roots=named_folders(NAME),
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.terminal.reader:TerminalReader"),
    view=lazy_import("everturn.sources.terminal.reader:view"),
    workspace=lazy_import("everturn.sources.terminal.reader:workspace"),
    unpack=lazy_import("everturn.sources.terminal.reader:unpack"),
    option="terminal-dir",
)
