"""Cursor: transcripts of its agent, the editor's databases, and Markdown exports.

- `~/.cursor/projects/<slug>/agent-transcripts/<id>/<id>.jsonl`: what was said and called, without what calls gave back.
- `state.vscdb`: databases that hold composer and chat conversations, the newer ones bubble by bubble.
- Markdown, as the editor exports it.

Read first: `find` (where they are), `database` (taking a database apart), `said` (transcripts), `bubbles` (what is in the
databases), `export` (Markdown), `reader`.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import
from everturn.sources.cursor.files import NAME, find, roots, sniff, workspace

SOURCE = Source(
    name=NAME,
    title="Cursor",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.cursor.reader:reader"),
    view=lazy_import("everturn.sources.cursor.reader:view"),
    workspace=workspace,
    unpack=lazy_import("everturn.sources.cursor.files:unpack"),
    is_database=True,
    private=("DELETE FROM ItemTable WHERE key LIKE 'cursorAuth/%' OR key LIKE 'secret:%' OR key LIKE '%Token'",),
    option="cursor-dir",
)
