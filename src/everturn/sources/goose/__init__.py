"""Goose: a database of all sessions, and one file of lines per session in versions before 1.10.

Read first: `find` (where they are), `content` (what a message holds), `database` (taking the database apart), `reader`.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import
from everturn.sources.goose.reader import NAME, find, resume_command, roots, sniff, workspace

SOURCE = Source(
    name=NAME,
    title="Goose",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.goose.reader:reader"),
    view=lazy_import("everturn.sources.goose.reader:view"),
    workspace=workspace,
    unpack=lazy_import("everturn.sources.goose.reader:unpack"),
    is_database=True,
    option="goose-dir",
    resume_command=resume_command,
)
