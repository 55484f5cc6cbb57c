"""Copilot CLI: sessions in `~/.copilot/session-state`, one event per line.

Read first: `find` (where files are), `events` (what an event becomes), `reader` (events together).
"""

from __future__ import annotations

from everturn.model.conversation import Message
from everturn.sources import Found, Reader, Source
from everturn.sources.copilot_cli.find import NAME, find, resume_command, roots, sniff, workspace


def _reader(found: Found, state: bytes) -> Reader:
    from everturn.sources.copilot_cli.reader import EventReader

    return EventReader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.copilot_cli.events import view

    return view(record)


SOURCE = Source(
    name=NAME,
    title="Copilot CLI",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=_view,
    workspace=workspace,
    option="copilot-dir",
    resume_command=resume_command,
)
