"""Codex: rollouts in `~/.codex/sessions`, one JSON record per line, some compressed.

Read first: `find` (where files are), `events` (what a record is, in both eras), `speaker` (who speaks), `message` (a record
by itself), `reader` (records together). `screenlog` reads the log that the terminal program writes on request.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everturn.model.conversation import Message
from everturn.sources import Found, Member, Reader, Source
from everturn.sources.codex.find import NAME, find, is_screen_log, resume_command, roots, sniff, workspace


def _reader(found: Found, state: bytes) -> Reader:
    if is_screen_log(found):
        from everturn.sources.codex.screenlog import ScreenLogReader

        return ScreenLogReader(found, state)
    from everturn.sources.codex.reader import RolloutReader

    return RolloutReader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.codex.view import view

    return view(record)


def _unpack(found: Found, path: Path) -> Iterator[Member]:
    from everturn.sources.codex.compressed import unpack

    return unpack(found, path)


SOURCE = Source(
    name=NAME,
    title="Codex",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=_view,
    workspace=workspace,
    unpack=_unpack,
    option="codex-dir",
    resume_command=resume_command,
)
