"""ChatGPT: the data export, `conversations.json` by itself or inside the zip file that the service sends."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders, no_workspace

SOURCE = Source(
    name="chatgpt",
    title="ChatGPT export",
    parser=1,
    fields=("mapping", "current_node", "create_time", "content_type", "end_turn", "moderation_results", "model_slug"),
    roots=named_folders("chatgpt"),
    workspace=no_workspace,
    is_placeless=True,
    option="chatgpt-dir",
    **lazy_imports("everturn.sources.chatgpt.reader", "find", "sniff", "reader", "view", "unpack"),
)
