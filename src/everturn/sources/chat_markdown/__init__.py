"""Chat Markdown: conversations that `everturn chat` and similar loops save, each with a summary for the next session.

Reading order: `message` (the layout, and one passage as a message), `reader` (a whole file, where files are, and writing).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, lazy_imports

SOURCE = Source(
    name="chat_markdown",
    title="Chat Markdown",
    parser=1,
    view=lazy_import("everturn.sources.chat_markdown.message:view"),
    option="chat-dir",
    saves_chats=True,
    **lazy_imports(
        "everturn.sources.chat_markdown.reader",
        "roots",
        "find",
        "sniff",
        "workspace",
        "write",
        "write_pieces",
        reader="ChatReader",
    ),
)
