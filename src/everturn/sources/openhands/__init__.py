"""OpenHands: a folder per conversation with one small file per event, and trajectories of older versions as one list."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, lazy_imports, named_folders

SOURCE = Source(
    name="openhands",
    title="OpenHands",
    parser=1,
    fields=(
        "llm_message",
        "tool_call_metadata",
        "llm_metrics",
        "action",
        "observation",
        "source",
        "cause",
        "extras",
        "args",
        "llm_response_id",
    ),
    roots=named_folders("openhands", "~/.openhands/conversations", "~/.openhands-state/sessions"),
    option="openhands-dir",
    workspace=lazy_import("everturn.sources.toolkit.json_document:workspace"),
    **lazy_imports("everturn.sources.openhands.reader", "find", "sniff", "view", "reader", "unpack"),
)
