"""OpenCode: sessions in its database, in the folder of small files it had before, and in what it exports.

Read first: `find` (where they are), `records` (what a record is), `message` (a message with its parts), `reader`.
"""

from __future__ import annotations

from everturn.sources import Ask, Install, Native, Source, lazy
from everturn.sources.opencode.find import NAME, find, roots, sniff
from everturn.sources.opencode.shapes import folder_in

SOURCE = Source(
    name=NAME,
    title="OpenCode",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=lazy("everturn.sources.opencode.reader:ConversationReader"),
    view=lazy("everturn.sources.opencode.view:view"),
    workspace=folder_in,
    unpack=lazy("everturn.sources.opencode.unpacking:unpack"),
    is_database=True,
    private=('DELETE FROM "account"', 'DELETE FROM "credential"', 'DELETE FROM "session_share"'),
    option="opencode-dir",
    resume_command=lambda native_id: ["opencode", "--session", native_id],
    native=Native(
        name=lazy("everturn.sources.opencode.native:name"),
        place=lazy("everturn.sources.opencode.native:place"),
        write=lazy("everturn.sources.opencode.native:write"),
        take_in=lazy("everturn.sources.opencode.native:take_in"),
        begin=lazy("everturn.sources.opencode.native:begin"),
    ),
    ask=Ask(
        command=lazy("everturn.sources.opencode.asking:command"),
        read=lazy("everturn.sources.opencode.asking:read"),
        around=lazy("everturn.sources.opencode.asking:around"),
        leaves="nothing: its database is one in memory for this run",
    ),
    install=Install(lazy("everturn.sources.opencode.installing:edits"), "Start it anew."),
)
