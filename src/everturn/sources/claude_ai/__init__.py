"""claude.ai: the data export, `conversations.json` by itself or in the zip file that is sent.

Read first: `unpack` (conversations as lines), `message` (a line by itself), `reader` (lines together).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources import Found, Source, given, lazy, nowhere

NAME = "claude_ai"
_MESSAGES = re.compile(rb'"chat_messages"\s*:\s*\[')
_SENDER = re.compile(rb'"sender"\s*:\s*"(?:human|assistant)"')
_EMPTY = re.compile(rb'"chat_messages"\s*:\s*\[\s*\]')


def _find(root: Path) -> Iterator[Found]:
    """Exports in a folder and its folders."""
    from everturn.sources.exports import below

    return below(root, _sniff)


def _sniff(path: Path, head: bytes) -> Found | None:
    """What a file is, given its first bytes; None when it is not ours."""
    from everturn.sources.exports import beginning

    try:
        start = beginning(path, head)
    except OSError:
        return None
    found = _MESSAGES.search(start)
    ours = found and (_SENDER.search(start, found.start()) or _EMPTY.match(start, found.start()))
    return Found(path, "container") if ours else None


SOURCE = Source(
    name=NAME,
    title="claude.ai export",
    parser=1,
    roots=given(NAME),
    find=_find,
    sniff=_sniff,
    reader=lazy("everturn.sources.claude_ai.reader:reader"),
    view=lazy("everturn.sources.claude_ai.message:view"),
    workspace=nowhere,
    unpack=lazy("everturn.sources.claude_ai.unpack:unpack"),
    option="claude-ai-dir",
)
