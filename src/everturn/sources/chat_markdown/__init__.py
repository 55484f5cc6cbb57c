"""Chat Markdown: conversations that `everturn chat` and similar loops save, each with a summary for the next session.

Reading order: `message` (the layout, and one passage as a message), `reader` (a whole file, where files are, and writing).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import

SOURCE = Source(
    name="chat_markdown",
    title="Chat Markdown",
    parser=1,
    roots=lazy_import("everturn.sources.chat_markdown.reader:roots"),
    find=lazy_import("everturn.sources.chat_markdown.reader:find"),
    sniff=lazy_import("everturn.sources.chat_markdown.reader:sniff"),
    reader=lazy_import("everturn.sources.chat_markdown.reader:ChatReader"),
    view=lazy_import("everturn.sources.chat_markdown.message:view"),
    workspace=lazy_import("everturn.sources.chat_markdown.reader:workspace"),
    option="chat-dir",
    write=lazy_import("everturn.sources.chat_markdown.reader:write"),
    saves_chats=True,
)
