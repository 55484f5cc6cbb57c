"""Junie, the agent of JetBrains: a folder per session in `~/.junie/sessions`, with its events as lines.

The client is closed. What is read here is what public readers of its files agree on.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="junie",
    title="Junie",
    parser=1,
    fields=("kind", "agentEvent", "stepId", "timestampMs", "requestId", "taskId", "modelUsage", "currentDirectory"),
    roots=named_folders("junie", "~/.junie/sessions"),
    option="junie-dir",
    **lazy_imports("everturn.sources.junie.reader", "find", "sniff", "view", "workspace", reader="JunieReader"),
)
