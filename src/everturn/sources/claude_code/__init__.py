"""Claude Code: transcripts in `~/.claude/projects`, one JSON record per line.

Read first: `find` (where files are), `events` (what a record is), `speaker` (who speaks), `message` (a record by itself),
`reader` (records together).
"""

from __future__ import annotations

from everturn.sources import Found, Reader, Source
from everturn.sources.claude_code.find import NAME, find, roots, sniff
from everturn.sources.claude_code.housekeeping import resume_command, retention
from everturn.sources.claude_code.reader import TranscriptReader
from everturn.sources.claude_code.sniffing import workspace
from everturn.sources.claude_code.view import view
from everturn.sources.claude_code.whole import WholeReader


def _reader(found: Found, state: bytes) -> Reader:
    return WholeReader(found, state) if found.kind in ("output", "meta") else TranscriptReader(found, state)


SOURCE = Source(
    name=NAME,
    title="Claude Code",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=view,
    workspace=workspace,
    option="claude-dir",
    retention=retention,
    resume_command=resume_command,
)
