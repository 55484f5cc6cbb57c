"""Claude Code: transcripts in `~/.claude/projects`, one JSON record per line.

Read first: `files` (where they are), `records` (the structs), `blocks` (blocks, calls and speakers), `message` (a record by
itself), `reader` (records together).
"""

from __future__ import annotations

from everturn.sources.claude_code.files import NAME, find, folder_of, owner_of, roots, sniff, workspace
from everturn.sources.claude_code.program import resume_command, retention
from everturn.sources.contract import AskProgram, Install, NativeWriter, Source, lazy_import

SOURCE = Source(
    name=NAME,
    title="Claude Code",
    parser=7,
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
    original=lazy_import("everturn.sources.claude_code.records:original"),
    backups=lazy_import("everturn.sources.claude_code.records:file_backups"),
    option="claude-dir",
    retention=retention,
    resume_command=resume_command,
    finds=lazy_import("everturn.sources.claude_code.program:finds"),
    native=NativeWriter(
        name=lazy_import("everturn.sources.toolkit.agent_program:dashed_id"),
        place=lazy_import("everturn.sources.claude_code.program:place"),
        write=lazy_import("everturn.sources.claude_code.program:write"),
        begin=lazy_import("everturn.sources.claude_code.program:begin"),
        copy=lazy_import("everturn.sources.claude_code.program:copy"),
        offers=lazy_import("everturn.sources.claude_code.program:offers"),
    ),
    check=lazy_import("everturn.sources.claude_code.check:check"),
    follows=lazy_import("everturn.sources.claude_code.check:follows"),
    ask=AskProgram(
        command=lazy_import("everturn.sources.claude_code.program:command"),
        read=lazy_import("everturn.sources.claude_code.program:read"),
        around=lazy_import("everturn.sources.claude_code.program:around"),
        leaves="nothing: it is told not to keep the session",
    ),
    install=Install(lazy_import("everturn.sources.claude_code.program:edits"), "Start it anew; `/plugin` shows it."),
)
