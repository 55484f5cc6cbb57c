"""Claude Code: transcripts in `~/.claude/projects`, one JSON record per line.

Read first: `find` (where files are), `events` (what a record is), `speaker` (who speaks), `message` (a record by itself),
`reader` (records together).
"""

from __future__ import annotations

from everturn.model.conversation import Message
from everturn.sources import Found, Reader, Source
from everturn.sources.claude_code.find import NAME, find, roots, sniff
from everturn.sources.claude_code.housekeeping import resume_command, retention
from everturn.sources.claude_code.sniffing import workspace


def _reader(found: Found, state: bytes) -> Reader:
    if found.kind in ("output", "meta"):
        from everturn.sources.claude_code.whole import WholeReader

        return WholeReader(found, state)
    from everturn.sources.claude_code.reader import TranscriptReader

    return TranscriptReader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.claude_code.view import view

    return view(record)


SOURCE = Source(
    name=NAME,
    title="Claude Code",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=_view,
    workspace=workspace,
    option="claude-dir",
    retention=retention,
    resume_command=resume_command,
)
