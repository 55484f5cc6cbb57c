"""Kiro: sessions of the CLI as lines in `~/.kiro/sessions/cli`, those of the editor as documents in its storage.

The clients are closed. What is read here is what public readers of their files agree on. The databases of the CLI are those
of its predecessor: `amazon_q` reads them.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="kiro",
    title="Kiro",
    parser=2,
    fields=(
        "kind",
        "message_id",
        "toolUseId",
        "history",
        "sessionId",
        "workspaceDirectory",
        "promptLogs",
        "contextItems",
        "editorState",
        "executionId",
        "autonomyMode",
        "selectedModel",
    ),
    roots=named_folders(
        "kiro", "~/.kiro/sessions/cli", "{config}/Kiro/User/globalStorage/kiro.kiroagent/workspace-sessions"
    ),
    option="kiro-dir",
    **lazy_imports(
        "everturn.sources.kiro.reader", "find", "sniff", "view", "workspace", "folder_of", reader="KiroReader"
    ),
)
