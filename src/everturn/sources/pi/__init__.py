"""Pi: sessions in `~/.pi/agent/sessions`, one entry per line.

Since version 2 entries form a tree: a human who goes back and asks again starts a branch in the same file. All branches are
read, in the order in which their entries were written.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import

SOURCE = Source(
    name="pi",
    title="Pi",
    parser=1,
    roots=lazy_import("everturn.sources.pi.reader:roots"),
    find=lazy_import("everturn.sources.pi.reader:find"),
    sniff=lazy_import("everturn.sources.pi.reader:sniff"),
    reader=lazy_import("everturn.sources.pi.reader:PiReader"),
    view=lazy_import("everturn.sources.pi.reader:view"),
    workspace=lazy_import("everturn.sources.pi.reader:workspace"),
    option="pi-dir",
    resume_command=lambda native_id: ["pi", "--session", native_id],
)
