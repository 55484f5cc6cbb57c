"""The journal of a conversation that everturn itself runs: one record per line, written straight into the archive.

There is no folder to look in: the archive is where journals are (at paths `journal:SESSION`, which are no places on a
disk). A journal that was exported is known by its first line and reads the same. Read first: `records` (what a record
becomes), `reader`. They are written by `everturn.loop.journal`.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, named_folders
from everturn.sources.journal.reader import NAME, find, sniff, workspace

SOURCE = Source(
    name=NAME,
    title="everturn journal",
    parser=1,
    roots=named_folders(NAME),
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.journal.reader:JournalReader"),
    view=lazy_import("everturn.sources.journal.reader:view"),
    workspace=workspace,
)
