"""ChatGPT: the data export, `conversations.json` by itself or in the zip file that is sent.

Read first: `unpack` (conversations as lines), `message` (a line by itself), `reader` (lines together).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from everturn.model.conversation import Message
from everturn.sources import Found, Member, Places, Reader, Source, beginning

NAME = "chatgpt"
_MAPPING = re.compile(rb'"mapping"\s*:\s*\{\s*"[^"]{1,200}"\s*:\s*\{')
_NODE = re.compile(rb'"(?:children|parent)"\s*:')


def _roots(places: Places) -> list[Path]:
    """Existing folders named by the user: an export is wherever it was downloaded to."""
    return [folder.absolute() for folder in places.extra.get(NAME, ()) if folder.is_dir()]


def _find(root: Path) -> Iterator[Found]:
    """Exports in a folder and its folders."""
    for pattern in ("*.zip", "conversations*.json"):
        for path in sorted(root.rglob(pattern)):
            if path.is_file() and not path.is_symlink() and (found := _sniff(path, beginning(path))) is not None:
                yield found


def _sniff(path: Path, head: bytes) -> Found | None:
    """What a file is, given its first bytes; None when it is not ours."""
    from everturn.sources.exports import beginning

    try:
        start = beginning(path, head)
    except OSError:
        return None
    found = _MAPPING.search(start)
    return Found(path, "container") if found and _NODE.search(start, found.start()) else None


def _reader(found: Found, state: bytes) -> Reader:
    from everturn.sources.chatgpt.reader import ConversationReader

    return ConversationReader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.chatgpt.message import view

    return view(record)


def _unpack(found: Found, path: Path) -> Iterator[Member]:
    from everturn.sources.chatgpt.unpack import unpack

    return unpack(path)


def _workspace(head: bytes) -> str:
    """There is none."""
    return ""


SOURCE = Source(
    name=NAME,
    title="ChatGPT export",
    parser=1,
    roots=_roots,
    find=_find,
    sniff=_sniff,
    reader=_reader,
    view=_view,
    workspace=_workspace,
    unpack=_unpack,
    option="chatgpt-dir",
)
