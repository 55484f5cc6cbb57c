"""Pi: sessions in `~/.pi/agent/sessions`, one entry per line.

Since version 2 entries form a tree: a human who goes back and asks again starts a branch in the same file. All branches are
read, in the order in which their entries were written.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="pi",
    title="Pi",
    parser=1,
    marks_failures=True,
    fields=(
        "thinkingLevel",
        "stopReason",
        "cacheRead",
        "cacheWrite",
        "modelId",
        "parentId",
        "toolCallId",
        "firstKeptEntryId",
    ),
    roots=named_folders("pi", "$PI_CODING_AGENT_DIR", "~/.pi/agent"),
    option="pi-dir",
    resume_command=lambda native_id: ["pi", "--session", native_id],
    **lazy_imports("everturn.sources.pi.reader", "find", "sniff", "view", "workspace", reader="PiReader"),
)
