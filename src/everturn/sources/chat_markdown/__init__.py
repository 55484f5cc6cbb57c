"""Conversations that a chat loop saves as Markdown, with a summary from which the next session goes on.

Read first: `layout` (what a line is), `message` (a passage by itself), `reader` (passages together), `writing` (the way
back).
"""

from __future__ import annotations

from everturn.sources.chat_markdown.reader import NAME, find, roots, sniff
from everturn.sources.contract import Source, lazy_import


def _workspace(head: bytes) -> str:
    from everturn.sources.chat_markdown.message import header

    return header(head.decode("utf-8", "replace")).workspace


SOURCE = Source(
    name=NAME,
    title="Chat Markdown",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.chat_markdown.reader:ChatReader"),
    view=lazy_import("everturn.sources.chat_markdown.message:view"),
    workspace=_workspace,
    option="chat-dir",
    write=lazy_import("everturn.sources.chat_markdown.reader:write"),
    saves_chats=True,
)
