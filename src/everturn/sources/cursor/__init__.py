"""Cursor: transcripts of its agent, the editor's databases, and Markdown exports.

- `~/.cursor/projects/<slug>/agent-transcripts/<id>/<id>.jsonl`: messages and tool calls, without the results of the calls.
- `state.vscdb`: databases that hold composer and chat conversations, the newer ones bubble by bubble.
- Markdown, as the editor exports it.

Reading order: `files` (where they are, and unpacking databases), `message` (a bubble, a line or an export section as a
message), `reader` (a whole conversation).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, lazy_imports, named_folders

SOURCE = Source(
    name="cursor",
    title="Cursor",
    parser=1,
    fields=("message", "contents"),
    **lazy_imports("everturn.sources.cursor.reader", "view", reader="CursorReader"),
    is_database=True,
    private=("DELETE FROM ItemTable WHERE key LIKE 'cursorAuth/%' OR key LIKE 'secret:%' OR key LIKE '%Token'",),
    roots=named_folders("cursor", "~/.cursor", "{config}/Cursor/User"),
    option="cursor-dir",
    workspace=lazy_import("everturn.sources.toolkit.json_document:workspace"),
    **lazy_imports("everturn.sources.cursor.files", "find", "sniff", "unpack"),
)
