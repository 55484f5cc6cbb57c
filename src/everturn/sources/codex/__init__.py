"""Codex: rollouts in `~/.codex/sessions`, one JSON record per line, some compressed.

Read first: `files` (where they are), `records` (records of both eras, reader state), `calls` (calls and speakers), `message`
(a record by itself), `reader` (records together). `screen_log` reads the log that the terminal program writes on request.
"""

from __future__ import annotations

from everturn.sources.codex.files import NAME, find, resume_command, sniff, workspace
from everturn.sources.contract import (
    AskProgram,
    Install,
    NativeWriter,
    Source,
    lazy_import,
    lazy_imports,
    named_folders,
)

SOURCE = Source(
    name=NAME,
    title="Codex",
    parser=5,
    fields=(
        "payload",
        "cli_version",
        "originator",
        "approval_policy",
        "sandbox_policy",
        "encrypted_content",
        "rate_limits",
        "record_type",
        "base_instructions",
        "call_id",
    ),
    roots=named_folders(NAME, "$CODEX_HOME", "~/.codex"),
    find=find,
    sniff=sniff,
    **lazy_imports("everturn.sources.codex.reader", "view", reader="open_reader"),
    workspace=workspace,
    is_database=True,  # the goals; rollouts are files
    **lazy_imports("everturn.sources.codex.files", "owner_of", "unpack"),
    option="codex-dir",
    resume_command=resume_command,
    native=NativeWriter(
        **lazy_imports("everturn.sources.codex.program", "name", "place", "write", "begin", "copy", "offers"),
        window=272_000,
    ),
    check=lazy_import("everturn.sources.codex.check:check"),
    ask=AskProgram(
        leaves="nothing: it is told not to keep the session",
        **lazy_imports("everturn.sources.codex.program", "command", "read", "around"),
    ),
    install=Install(
        lazy_import("everturn.sources.codex.program:edits"),
        "Start it anew and look at the hooks with `/hooks`: it runs them when you have trusted them.",
    ),
)
