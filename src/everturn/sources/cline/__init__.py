"""Cline and Roo Code: task folders of the editor extension, one JSON document for each view of a task.

`api_conversation_history.json`, the history sent to the model, is the conversation of a task. `ui_messages.json`, the panel
shown to the human, is read as the conversation only where the history is missing; beside it, it is a note about the task and
adds thoughts, tokens and errors that the history lacks. `task_metadata.json` is a note too.

Reading order: `calls` (tool calls and the extension's marks), `message` (history and panel elements), `reader` (where tasks
are, and a whole document).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="cline",
    title="Cline and Roo Code",
    parser=2,
    fields=(
        "say",
        "ask",
        "conversationHistoryIndex",
        "lastCheckpointHash",
        "files_in_context",
        "model_usage",
        "cline_read_date",
    ),
    roots=named_folders(
        "cline",
        "{editor}/globalStorage/saoudrizwan.claude-dev/tasks",
        "{editor}/globalStorage/rooveterinaryinc.roo-cline/tasks",
        "$CLINE_DIR/data/tasks",
        "~/.cline/data/tasks",
    ),
    option="cline-dir",
    **lazy_imports("everturn.sources.cline.reader", "find", "sniff", "workspace", "view", reader="ClineReader"),
)
