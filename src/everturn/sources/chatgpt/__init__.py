"""ChatGPT: the data export, `conversations.json` by itself or in the zip file that is sent.

Read first: `unpack` (conversations as lines), `message` (a line by itself), `reader` (lines together).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources.contract import Source, SourceCandidate, lazy_import, named_folders, no_workspace

NAME = "chatgpt"
_MAPPING = re.compile(rb'"mapping"\s*:\s*\{\s*"[^"]{1,200}"\s*:\s*\{')
_NODE = re.compile(rb'"(?:children|parent)"\s*:')


def _find(root: Path) -> Iterator[SourceCandidate]:
    """Exports in a folder and its folders."""
    from everturn.sources.toolkit.chat_export import find_exports

    return find_exports(root, _sniff)


def _sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    from everturn.sources.toolkit.chat_export import read_export_head

    try:
        start = read_export_head(path, head)
    except OSError:
        return None
    found = _MAPPING.search(start)
    return SourceCandidate(path, "container") if found and _NODE.search(start, found.start()) else None


SOURCE = Source(
    name=NAME,
    title="ChatGPT export",
    parser=1,
    roots=named_folders(NAME),
    find=_find,
    sniff=_sniff,
    reader=lazy_import("everturn.sources.chatgpt.reader:reader"),
    view=lazy_import("everturn.sources.chatgpt.reader:view"),
    workspace=no_workspace,
    unpack=lazy_import("everturn.sources.chatgpt.reader:unpack"),
    option="chatgpt-dir",
)
