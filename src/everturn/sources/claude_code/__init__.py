"""Claude Code: transcripts in `~/.claude/projects`, one JSON record per line.

Read first: `find` (where files are), `events` (what a record is), `speaker` (who speaks), `message` (a record by itself),
`reader` (records together).
"""

from __future__ import annotations

from everturn.sources import AskProgram, Install, NativeWriter, Source, SourceCandidate, SourceReader, lazy_import
from everturn.sources.claude_code.find import NAME, find, roots, sniff
from everturn.sources.claude_code.housekeeping import resume_command, retention
from everturn.sources.claude_code.sniffing import workspace


def _reader(found: SourceCandidate, state: bytes) -> SourceReader:
    if found.kind in ("output", "meta"):
        from everturn.sources.claude_code.whole import ClaudeWholeFileReader

        return ClaudeWholeFileReader(found, state)
    from everturn.sources.claude_code.reader import ClaudeReader

    return ClaudeReader(found, state)


SOURCE = Source(
    name=NAME,
    title="Claude Code",
    parser=2,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=lazy_import("everturn.sources.claude_code.view:view"),
    workspace=workspace,
    option="claude-dir",
    retention=retention,
    resume_command=resume_command,
    native=NativeWriter(
        name=lazy_import("everturn.sources.native:dashed_id"),
        place=lazy_import("everturn.sources.claude_code.native:place"),
        write=lazy_import("everturn.sources.claude_code.native:write"),
        begin=lazy_import("everturn.sources.claude_code.native:begin"),
    ),
    check=lazy_import("everturn.sources.claude_code.checking:check"),
    ask=AskProgram(
        command=lazy_import("everturn.sources.claude_code.asking:command"),
        read=lazy_import("everturn.sources.claude_code.asking:read"),
        around=lazy_import("everturn.sources.claude_code.asking:around"),
        leaves="nothing: it is told not to keep the session",
    ),
    install=Install(lazy_import("everturn.sources.claude_code.installing:edits"), "Start it anew; `/plugin` shows it."),
)
