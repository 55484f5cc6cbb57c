"""Gemini CLI: sessions in `~/.gemini/tmp/<project>/chats`, one JSON document each, since 2026 patch-style lines.

Read first: `find` (where files are), `message` (a record by itself), `calls`, `reader` (records together).
"""

from __future__ import annotations

from everturn.sources import AskProgram, Install, NativeWriter, Source, lazy_import
from everturn.sources.gemini.find import NAME, find, resume_command, retention, roots, sniff, workspace

SOURCE = Source(
    name=NAME,
    title="Gemini CLI",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.gemini.reader:reader"),
    view=lazy_import("everturn.sources.gemini.view:view"),
    workspace=workspace,
    option="gemini-dir",
    retention=retention,
    resume_command=resume_command,
    native=NativeWriter(
        name=lazy_import("everturn.sources.native:dashed_id"),
        place=lazy_import("everturn.sources.gemini.native:place"),
        write=lazy_import("everturn.sources.gemini.native:write"),
        marks=lazy_import("everturn.sources.gemini.native:marks"),
        begin=lazy_import("everturn.sources.gemini.native:begin"),
    ),
    ask=AskProgram(
        command=lazy_import("everturn.sources.gemini.asking:command"),
        read=lazy_import("everturn.sources.gemini.asking:read"),
        around=lazy_import("everturn.sources.gemini.asking:around"),
        leaves="nothing with GEMINI_API_KEY; with a login, a session in a project named everturn-asking-…",
    ),
    install=Install(lazy_import("everturn.sources.gemini.installing:edits"), "Start it anew; `/extensions` shows it."),
)
