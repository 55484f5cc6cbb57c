"""Files in the agents' folders that look like transcripts, although no source reads them.

Looked for beside the sessions of every agent: a new version of an agent may write another format, or another agent may
share the folder. The work is bounded, because these folders also hold caches and copies of projects.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from everturn.sources.contract import SearchPlaces, Source, read_beginning
from everturn.sources.recognition import resembles_transcript

#: Why such a file is not read, and what to do.
UNREAD = "looks like a transcript, but no source reads this format; `everturn sources explain FILE` says why"

_ENDINGS = (".json", ".jsonl", ".ndjson")
_SKIPPED = frozenset((".git", "node_modules", ".venv", "__pycache__", "cache", "Cache", "CachedData", "logs"))
_MOST_ENTRIES = 20_000
_MOST_FILES = 2_000
_HEAD = 16 << 10


def find_unread(sources: Mapping[str, Source], places: SearchPlaces, known: Collection[str]) -> list[str]:
    """Return the files below the sources' folders that look like transcripts and are not `known`."""
    roots = {os.path.realpath(root): root for source in sources.values() for root in source.roots(places)}
    unread: dict[str, None] = {}
    for seen, path in enumerate(_candidates(roots.values(), known)):
        if seen >= _MOST_FILES:
            break
        if resembles_transcript(read_beginning(path, _HEAD)):
            unread[path] = None
    return list(unread)


def listed_paths(sources: Mapping[str, Source], places: SearchPlaces) -> set[str]:
    """Return the paths of all files that the sources find."""
    found: set[str] = set()
    for source in sources.values():
        for root in source.roots(places):
            try:
                found.update(str(one.path) for one in source.find(root))
            except OSError:  # a folder that cannot be listed; the scan reports it
                continue
    return found


def _candidates(roots: Iterable[Path], known: Collection[str]) -> Iterator[str]:
    left = _MOST_ENTRIES
    for root in roots:
        for folder, below, names in os.walk(root):
            left -= len(names) + len(below)
            if left < 0:
                return
            below[:] = sorted(name for name in below if name not in _SKIPPED)
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith(_ENDINGS) and path not in known and not os.path.islink(path):
                    yield path
