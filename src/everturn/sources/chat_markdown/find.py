"""Finds saved conversations (`~/agent-conversations` unless the user names other folders), and knows them by content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources import SearchPlaces, SourceCandidate, existing_folders, read_beginning

NAME = "chat_markdown"

_USUAL = "agent-conversations"
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?\s*# [^\n]{1,200} Conversation\s*\n")
_SESSION = re.compile(rb"^\*\*Session ID:\*\*[ \t]+(\S[^\r\n]{0,199}?)[ \t\r]*$", re.MULTILINE)
_OTHER = re.compile(rb"^\*\*(?:Total Queries|Agent|Agent Path):\*\*", re.MULTILINE)


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders: named by the user, and the usual one; each once."""
    return existing_folders([*places.extra.get(NAME, ()), places.home / _USUAL])


def find(root: Path) -> Iterator[SourceCandidate]:
    """All conversations in a folder and its folders."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".md"):
                path = Path(folder, name)
                found = sniff(path, read_beginning(path))
                if found is not None:
                    yield found


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    start = head[:4096].partition(b"\n## ")[0]
    session = _SESSION.search(start)
    if session is None or not _HEAD.match(start) or not _OTHER.search(start):
        return None
    return SourceCandidate(path, "main", session[1].decode("utf-8", "replace").replace("\0", "\ufffd"))
