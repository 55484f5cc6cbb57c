"""Claude Code: transcripts in `~/.claude/projects`, one JSON record per line.

Read first: `find` (where files are), `events` (what a record is), `speaker` (who speaks), `message` (a record by itself),
`reader` (records together).
"""

from __future__ import annotations

from everturn.sources import Ask, Found, Install, Native, Reader, Source, lazy
from everturn.sources.claude_code.find import NAME, find, roots, sniff
from everturn.sources.claude_code.housekeeping import resume_command, retention
from everturn.sources.claude_code.sniffing import workspace


def _reader(found: Found, state: bytes) -> Reader:
    if found.kind in ("output", "meta"):
        from everturn.sources.claude_code.whole import WholeReader

        return WholeReader(found, state)
    from everturn.sources.claude_code.reader import TranscriptReader

    return TranscriptReader(found, state)


SOURCE = Source(
    name=NAME,
    title="Claude Code",
    parser=2,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=lazy("everturn.sources.claude_code.view:view"),
    workspace=workspace,
    option="claude-dir",
    retention=retention,
    resume_command=resume_command,
    native=Native(
        name=lazy("everturn.sources.native:dashed_id"),
        place=lazy("everturn.sources.claude_code.native:place"),
        write=lazy("everturn.sources.claude_code.native:write"),
        begin=lazy("everturn.sources.claude_code.native:begin"),
    ),
    check=lazy("everturn.sources.claude_code.checking:check"),
    ask=Ask(
        command=lazy("everturn.sources.claude_code.asking:command"),
        read=lazy("everturn.sources.claude_code.asking:read"),
        around=lazy("everturn.sources.claude_code.asking:around"),
        leaves="nothing: it is told not to keep the session",
    ),
    install=Install(lazy("everturn.sources.claude_code.installing:edits"), "Start it anew; `/plugin` shows it."),
)
