"""ChatGPT: the data export, `conversations.json` by itself or in the zip file that is sent.

Read first: `unpack` (conversations as lines), `message` (a line by itself), `reader` (lines together).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources import Found, Source, given, lazy, nowhere

NAME = "chatgpt"
_MAPPING = re.compile(rb'"mapping"\s*:\s*\{\s*"[^"]{1,200}"\s*:\s*\{')
_NODE = re.compile(rb'"(?:children|parent)"\s*:')


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
    found = _MAPPING.search(start)
    return Found(path, "container") if found and _NODE.search(start, found.start()) else None


SOURCE = Source(
    name=NAME,
    title="ChatGPT export",
    parser=1,
    roots=given(NAME),
    find=_find,
    sniff=_sniff,
    reader=lazy("everturn.sources.chatgpt.reader:reader"),
    view=lazy("everturn.sources.chatgpt.message:view"),
    workspace=nowhere,
    unpack=lazy("everturn.sources.chatgpt.unpack:unpack"),
    option="chatgpt-dir",
)
