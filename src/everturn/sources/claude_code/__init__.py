"""Claude Code: transcripts in `~/.claude/projects`, one JSON record per line.

Read first: `files` (where they are), `records` (the structs), `blocks` (blocks, calls and speakers), `message` (a record by
itself), `reader` (records together).
"""

from __future__ import annotations

from everturn.sources.claude_code.files import NAME, find, folder_of, owner_of, roots, sniff, workspace
from everturn.sources.claude_code.program import resume_command, retention
from everturn.sources.contract import AskProgram, Install, NativeWriter, Source, lazy_import, lazy_imports

SOURCE = Source(
    name=NAME,
    title="Claude Code",
    parser=7,
    marks_failures=True,
    fields=(
        "parentUuid",
        "isSidechain",
        "userType",
        "gitBranch",
        "leafUuid",
        "toolUseResult",
        "requestId",
        "stop_reason",
        "trackedFileBackups",
        "sourceToolAssistantUUID",
    ),
    roots=roots,
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.claude_code.reader:open_reader"),
    view=lazy_import("everturn.sources.claude_code.message:view"),
    workspace=workspace,
    folder_of=folder_of,
    owner_of=owner_of,
    unpack=lazy_import("everturn.sources.claude_code.files:unpack"),
    **lazy_imports("everturn.sources.claude_code.records", "original", backups="file_backups"),
    option="claude-dir",
    retention=retention,
    resume_command=resume_command,
    finds=lazy_import("everturn.sources.claude_code.program:finds"),
    native=NativeWriter(
        name=lazy_import("everturn.sources.toolkit.agent_program:dashed_id"),
        **lazy_imports("everturn.sources.claude_code.program", "place", "write", "begin", "copy", "offers"),
    ),
    **lazy_imports("everturn.sources.claude_code.check", "check", "follows"),
    ask=AskProgram(
        leaves="nothing: it is told not to keep the session",
        **lazy_imports("everturn.sources.claude_code.program", "command", "read", "around"),
    ),
    install=Install(lazy_import("everturn.sources.claude_code.program:edits"), "Start it anew; `/plugin` shows it."),
)
