"""Conversations that a chat loop saves as Markdown, with a summary from which the next session goes on.

Read first: `layout` (what a line is), `message` (a passage by itself), `reader` (passages together), `writing` (the way
back).
"""

from __future__ import annotations

from everturn.model.conversation import Message, Part
from everturn.sources import Found, Reader, Source
from everturn.sources.chat_markdown.find import NAME, find, roots, sniff


def _reader(found: Found, state: bytes) -> Reader:
    from everturn.sources.chat_markdown.reader import ChatReader

    return ChatReader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.chat_markdown.message import view

    return view(record)


def _workspace(head: bytes) -> str:
    from everturn.sources.chat_markdown.message import header

    return header(head.decode("utf-8", "replace")).workspace


def _write(part: Part) -> str:
    from everturn.sources.chat_markdown.writing import write

    return write(part)


SOURCE = Source(
    name=NAME,
    title="Chat Markdown",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=_view,
    workspace=_workspace,
    option="chat-dir",
    write=_write,
)
