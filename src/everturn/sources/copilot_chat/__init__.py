"""VS Code Copilot Chat: one document per chat in `workspaceStorage/<hash>/chatSessions`, since 2026 a journal of changes.

Reading order: `files` (where chats are, and the document that a journal describes), `message` (the parts of a request as
messages), `reader` (a whole document).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, lazy_imports, named_folders, no_workspace

SOURCE = Source(
    name="copilot_chat",
    title="VS Code Copilot Chat",
    parser=1,
    fields=(
        "requests",
        "requesterUsername",
        "responderUsername",
        "initialLocation",
        "requestId",
        "responseId",
        "variableData",
        "toolCallRounds",
        "invocationMessage",
    ),
    reader=lazy_import("everturn.sources.copilot_chat.reader:CopilotChatReader"),
    view=lazy_import("everturn.sources.copilot_chat.message:view"),
    workspace=no_workspace,
    roots=named_folders("copilot_chat", "{editor}/workspaceStorage", "{editor}/globalStorage/emptyWindowChatSessions"),
    option="copilot-chat-dir",
    **lazy_imports("everturn.sources.copilot_chat.files", "find", "sniff", "folder_of", "unpack"),
)
