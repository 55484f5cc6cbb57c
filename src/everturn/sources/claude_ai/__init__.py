"""claude.ai: the data export, `conversations.json` by itself or inside the zip file that the service sends."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, named_folders, no_workspace

SOURCE = Source(
    name="claude_ai",
    title="claude.ai export",
    parser=1,
    roots=named_folders("claude_ai"),
    find=lazy_import("everturn.sources.claude_ai.reader:find"),
    sniff=lazy_import("everturn.sources.claude_ai.reader:sniff"),
    reader=lazy_import("everturn.sources.claude_ai.reader:reader"),
    view=lazy_import("everturn.sources.claude_ai.reader:view"),
    workspace=no_workspace,
    unpack=lazy_import("everturn.sources.claude_ai.reader:unpack"),
    option="claude-ai-dir",
)
