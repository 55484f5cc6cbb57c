"""Gemini CLI: sessions in `~/.gemini/tmp/<project>/chats`, one JSON document each, since 2026 patch-style lines.

Read first: `files` (where they are), `message` (a record by itself, with its calls), `reader` (records together).
"""

from __future__ import annotations

from everturn.sources.contract import (
    AskProgram,
    Install,
    NativeWriter,
    Source,
    lazy_import,
    lazy_imports,
    named_folders,
)
from everturn.sources.gemini.files import NAME, find, folder_of, resume_command, retention, sniff, workspace

SOURCE = Source(
    name=NAME,
    title="Gemini CLI",
    parser=3,
    marks_failures=True,
    fields=(
        "projectHash",
        "lastUpdated",
        "toolCalls",
        "thoughts",
        "displayContent",
        "resultDisplay",
        "functionResponse",
        "startTime",
    ),
    roots=named_folders(NAME, "$GEMINI_CLI_HOME/.gemini", "~/.gemini"),
    find=find,
    sniff=sniff,
    **lazy_imports("everturn.sources.gemini.reader", "view", reader="GeminiReader"),
    workspace=workspace,
    folder_of=folder_of,
    option="gemini-dir",
    retention=retention,
    resume_command=resume_command,
    native=NativeWriter(
        name=lazy_import("everturn.sources.toolkit.agent_program:dashed_id"),
        **lazy_imports("everturn.sources.gemini.program", "place", "write", "marks", "begin", "offers"),
        window=1_000_000,
    ),
    check=lazy_import("everturn.sources.gemini.check:check"),
    ask=AskProgram(
        leaves="nothing with GEMINI_API_KEY; with a login, a session in a project named everturn-asking-…",
        **lazy_imports("everturn.sources.gemini.program", "command", "read", "around"),
    ),
    install=Install(lazy_import("everturn.sources.gemini.program:edits"), "Start it anew; `/extensions` shows it."),
)
