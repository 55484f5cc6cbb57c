"""Amazon Q Developer CLI, and Kiro CLI that came from it: conversations in a database, and those that `/save` exported."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, lazy_imports, named_folders

SOURCE = Source(
    name="amazon_q",
    title="Amazon Q CLI",
    parser=1,
    fields=(
        "conversation_id",
        "next_message",
        "history",
        "valid_history_range",
        "transcript",
        "env_context",
        "env_state",
        "tool_use_results",
        "tool_uses",
        "request_metadata",
    ),
    is_database=True,
    private=("DELETE FROM auth_kv", "DELETE FROM state WHERE key LIKE '%token%' OR key LIKE '%auth%'"),
    roots=named_folders("amazon_q", "{data}/amazon-q", "{data}/kiro-cli"),
    option="amazon-q-dir",
    workspace=lazy_import("everturn.sources.toolkit.json_document:workspace"),
    **lazy_imports("everturn.sources.amazon_q.reader", "find", "sniff", "view", "reader", "unpack"),
)
