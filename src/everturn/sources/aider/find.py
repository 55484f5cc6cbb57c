"""Finds history files, and knows them by their content wherever else they lie.

aider writes into the root of each repository, so there is no folder to look in by itself: the home folder's own file,
the one named by AIDER_CHAT_HISTORY_FILE, and every repository below the folders that the user names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources import SearchPlaces, SourceCandidate, existing_folders

NAME = "aider"
HISTORY = ".aider.chat.history.md"

_DEEPEST = 8
_SKIPPED = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", ".cache", "site-packages"))
_HEAD = re.compile(rb"\s*(?:\xef\xbb\xbf)?# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*(?:\n|\Z)")
_ANY_HEAD = re.compile(rb"^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\s*$", re.MULTILINE)
_PROMPT = re.compile(rb"^#### \S", re.MULTILINE)


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders named by the user; and single files: the one the environment names, the one in the home folder."""
    wanted = list(places.extra.get(NAME, ()))
    named = places.env.get("AIDER_CHAT_HISTORY_FILE", "").strip()
    if named:
        wanted.append(places.home / named[2:] if named.startswith("~/") else Path(named))
    wanted.append(places.home / HISTORY)
    return existing_folders(wanted, files=True)


def find(root: Path) -> Iterator[SourceCandidate]:
    """The history files below a root, or the root itself where it is a file."""
    if root.is_file():
        yield SourceCandidate(root)
        return
    failures: list[OSError] = []
    yield from _walk(str(root), failures, 0)
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    usual = path.name == HISTORY and (_ANY_HEAD.search(head) or _PROMPT.search(head))
    return SourceCandidate(path) if usual or _HEAD.match(head) else None


def _walk(folder: str, failures: list[OSError], depth: int) -> Iterator[SourceCandidate]:
    folders = []
    try:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED:
                        folders.append(entry.path)
                elif entry.name == HISTORY and entry.is_file():
                    yield SourceCandidate(Path(entry.path))
    except OSError as failure:
        failures.append(failure)
    if depth < _DEEPEST:
        for path in folders:
            yield from _walk(path, failures, depth + 1)
