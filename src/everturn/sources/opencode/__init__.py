"""OpenCode: sessions in its database, in the folder of small files it had before, and in its exports.

Read first: `files` (where they are), `message` (records and messages), `parts` (blocks and calls), `reader`. `rendered` reads
transcripts exported as Markdown.
"""

from __future__ import annotations

from everturn.sources.contract import AskProgram, Install, NativeWriter, Source, lazy_import
from everturn.sources.opencode.files import NAME, find, folder_in, resume_command, roots, sniff

SOURCE = Source(
    name=NAME,
    title="OpenCode",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.opencode.reader:OpencodeReader"),
    view=lazy_import("everturn.sources.opencode.reader:view"),
    workspace=folder_in,
    unpack=lazy_import("everturn.sources.opencode.reader:unpack"),
    is_database=True,
    private=('DELETE FROM "account"', 'DELETE FROM "credential"', 'DELETE FROM "session_share"'),
    option="opencode-dir",
    resume_command=resume_command,
    native=NativeWriter(
        name=lazy_import("everturn.sources.opencode.program:name"),
        place=lazy_import("everturn.sources.opencode.program:place"),
        write=lazy_import("everturn.sources.opencode.program:write"),
        take_in=lazy_import("everturn.sources.opencode.program:take_in"),
        begin=lazy_import("everturn.sources.opencode.program:begin"),
    ),
    ask=AskProgram(
        command=lazy_import("everturn.sources.opencode.program:command"),
        read=lazy_import("everturn.sources.opencode.program:read"),
        around=lazy_import("everturn.sources.opencode.program:around"),
        leaves="nothing: its database is one in memory for this run",
    ),
    install=Install(lazy_import("everturn.sources.opencode.program:edits"), "Start it anew."),
)
