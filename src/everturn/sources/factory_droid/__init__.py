"""Factory Droid: sessions in `~/.factory/sessions`, one entry per line; a subagent has a file of its own.

The client is closed. What is read here is what public readers of its files agree on. Transcripts record no tokens: the
client keeps one running total per session in a settings file, which is not read.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="factory_droid",
    title="Factory Droid",
    parser=1,
    fields=(
        "owner",
        "hostId",
        "sessionTitle",
        "isSessionTitleManuallySet",
        "callingSessionId",
        "callingToolUseId",
        "parentId",
        "tool_use_id",
        "summaryText",
        "messageIndex",
    ),
    roots=named_folders("factory_droid", "~/.factory"),
    option="factory-dir",
    resume_command=lambda native_id: ["droid", "--resume", native_id],
    **lazy_imports("everturn.sources.factory_droid.reader", "find", "sniff", "view", "workspace", reader="DroidReader"),
)
