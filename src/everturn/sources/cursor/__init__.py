"""Cursor: transcripts of its agent, the editor's databases, and Markdown exports.

- `~/.cursor/projects/<slug>/agent-transcripts/<id>/<id>.jsonl`: messages and tool calls, without the results of the calls.
- `state.vscdb`: databases that hold composer and chat conversations, the newer ones bubble by bubble.
- Markdown, as the editor exports it.

Reading order: `files` (where they are, and unpacking databases), `message` (a bubble, a line or an export section as a
message), `reader` (a whole conversation).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import

SOURCE = Source(
    name="cursor",
    title="Cursor",
    parser=1,
    roots=lazy_import("everturn.sources.cursor.files:roots"),
    find=lazy_import("everturn.sources.cursor.files:find"),
    sniff=lazy_import("everturn.sources.cursor.files:sniff"),
    reader=lazy_import("everturn.sources.cursor.reader:CursorReader"),
    view=lazy_import("everturn.sources.cursor.reader:view"),
    workspace=lazy_import("everturn.sources.cursor.files:workspace"),
    unpack=lazy_import("everturn.sources.cursor.files:unpack"),
    is_database=True,
    private=("DELETE FROM ItemTable WHERE key LIKE 'cursorAuth/%' OR key LIKE 'secret:%' OR key LIKE '%Token'",),
    option="cursor-dir",
)
