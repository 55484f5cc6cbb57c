"""claude.ai: the data export, `conversations.json` by itself or inside the zip file that the service sends."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders, no_workspace

SOURCE = Source(
    name="claude_ai",
    title="claude.ai export",
    parser=1,
    fields=("chat_messages", "sender", "parent_message_uuid", "extracted_content", "account", "created_at"),
    roots=named_folders("claude_ai"),
    workspace=no_workspace,
    is_placeless=True,
    option="claude-ai-dir",
    **lazy_imports("everturn.sources.claude_ai.reader", "find", "sniff", "reader", "view", "unpack"),
)
