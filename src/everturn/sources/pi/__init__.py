"""Pi: sessions in `~/.pi/agent/sessions`, one entry per line.

Read first: `find` (where files are), `entries` (what an entry becomes), `reader` (entries together). Since version 2 entries
form a tree: a human who goes back and asks again starts a branch in the same file. Everything that was said is there in
the order in which it was said, and that is the order it is read in.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import
from everturn.sources.pi.reader import NAME, find, resume_command, roots, sniff, workspace

SOURCE = Source(
    name=NAME,
    title="Pi",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.pi.reader:PiReader"),
    view=lazy_import("everturn.sources.pi.reader:view"),
    workspace=workspace,
    option="pi-dir",
    resume_command=resume_command,
)
