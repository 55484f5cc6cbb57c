"""Grok Build, the CLI of xAI: a folder per session in `~/.grok/sessions`, with its conversation as lines.

The client is closed. What is read here is what public readers of its files agree on. Times and tokens are in a second file
of each session, `updates.jsonl`, which repeats the conversation in small pieces; it is not read.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders, no_workspace

SOURCE = Source(
    name="grok",
    title="Grok Build",
    parser=1,
    fields=(
        "synthetic_reason",
        "model_id",
        "tool_call_id",
        "tool_calls",
        "raw_output",
        "reasoning_content",
        "encrypted_content",
    ),
    roots=named_folders("grok", "~/.grok/sessions"),
    option="grok-dir",
    workspace=no_workspace,
    **lazy_imports("everturn.sources.grok.reader", "find", "sniff", "view", "reader", "folder_of"),
)
