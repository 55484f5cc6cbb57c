"""Continue: one JSON document per session in `~/.continue/sessions`, of the editor extensions and of the command line."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="continue_dev",
    title="Continue",
    parser=1,
    fields=(
        "history",
        "sessionId",
        "workspaceDirectory",
        "contextItems",
        "editorState",
        "promptLogs",
        "toolCallStates",
        "toolCallState",
        "chatModelTitle",
    ),
    roots=named_folders("continue_dev", "$CONTINUE_GLOBAL_DIR/sessions", "~/.continue/sessions"),
    option="continue-dir",
    **lazy_imports(
        "everturn.sources.continue_dev.reader", "find", "sniff", "workspace", "view", reader="ContinueReader"
    ),
)
