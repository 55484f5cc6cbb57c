"""OpenCode: sessions in its database, in the folder of small files it had before, and in its exports.

Read first: `files` (where they are), `message` (records and messages), `parts` (blocks and calls), `reader`. `rendered` reads
transcripts exported as Markdown.
"""

from __future__ import annotations

from everturn.sources.contract import AskProgram, Install, NativeWriter, Source, lazy_import, lazy_imports
from everturn.sources.opencode.files import NAME, find, folder_in, resume_command, roots, sniff

SOURCE = Source(
    name=NAME,
    title="OpenCode",
    parser=3,
    fields=("providerID", "modelID", "projectID", "sessionID", "messageID", "parentID", "callID", "directory", "slug"),
    roots=roots,
    find=find,
    sniff=sniff,
    workspace=folder_in,
    is_database=True,
    private=('DELETE FROM "account"', 'DELETE FROM "credential"', 'DELETE FROM "session_share"'),
    option="opencode-dir",
    resume_command=resume_command,
    native=NativeWriter(
        **lazy_imports("everturn.sources.opencode.program", "name", "place", "write", "take_in", "begin", "offers")
    ),
    check=lazy_import("everturn.sources.opencode.check:check"),
    ask=AskProgram(
        leaves="nothing: its database is one in memory for this run",
        **lazy_imports("everturn.sources.opencode.program", "command", "read", "around"),
    ),
    install=Install(lazy_import("everturn.sources.opencode.program:edits"), "Start it anew."),
    **lazy_imports("everturn.sources.opencode.reader", "view", "unpack", reader="OpencodeReader"),
)
