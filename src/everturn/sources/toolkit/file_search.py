"""Searches of folders for the files of a format."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from fnmatch import translate
from functools import partial
from pathlib import Path

from everturn.sources.contract import SourceCandidate, read_beginning


def find_files(
    root: Path,
    pick: Callable[[os.DirEntry[str]], SourceCandidate | None],
    *,
    skipped: Collection[str] = (),
    deepest: int = 8,
    closed_by: str = "",
    in_order: bool = True,
) -> Iterator[SourceCandidate]:
    """Yield what `pick` makes of the files below a root, `in_order` of their names, those of a folder before its subfolders'.

    Links to folders and folders named in `skipped` are not entered, nor are the folders beside a picked file named
    `closed_by`. An unreadable folder does not stop the search: the first error is raised at the end.
    """
    failures: list[OSError] = []

    def walk(folder: str, depth: int) -> Iterator[SourceCandidate]:
        folders: list[str] = []
        is_closed = depth >= deepest
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name) if in_order else list(listing)
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders += [] if entry.name in skipped else [entry.path]
                elif (candidate := pick(entry)) is not None:
                    is_closed = is_closed or entry.name == closed_by
                    yield candidate
        except OSError as failure:
            failures.append(failure)
        for inner in () if is_closed else folders:
            yield from walk(inner, depth + 1)

    yield from walk(str(root), 0)
    if failures:
        raise failures[0]


def finder(
    sniff: Callable[[Path, bytes], SourceCandidate | None],
    *names: str,
    without: str = "",
    below: str = "",
    skipped: Collection[str] = (),
    deepest: int = 8,
) -> Callable[[Path], Iterator[SourceCandidate]]:
    """Return a `Source.find`: the files that `sniff` recognises and whose name is one of `names` (patterns), not `without`.

    They are searched in the folder `below` a root, or in the root itself if it has no such folder.
    """
    matches = re.compile("|".join(map(translate, names))).match

    def pick(entry: os.DirEntry[str]) -> SourceCandidate | None:
        if not matches(entry.name) or entry.name == without or not entry.is_file():
            return None
        return sniff(Path(entry.path), read_beginning(entry.path))

    def find(root: Path) -> Iterator[SourceCandidate]:
        start = root / below if below and (root / below).is_dir() else root
        return find_files(start, pick, skipped=skipped, deepest=deepest)

    return find


def find_in_folders(
    root: Path,
    names: Iterable[str],
    pick: Callable[[Path, os.DirEntry[str]], SourceCandidate | None],
    *,
    deepest: int = 8,
    in_order: bool = True,
) -> Iterator[SourceCandidate]:
    """Yield what `find_files` finds in the folders of a root with these names, or in the root itself if it has none.

    `pick` gets the folder, too. An unreadable folder does not stop the search: the first error is raised at the end.
    """
    failures: list[OSError] = []
    for start in [root / name for name in names if (root / name).is_dir()] or [root]:
        try:
            yield from find_files(start, partial(pick, start), deepest=deepest, in_order=in_order)
        except OSError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


def sniff_files(
    root: Path,
    sniff: Callable[[Path, bytes], SourceCandidate | None],
    *suffixes: str,
    onerror: Callable[[OSError], object] | None = None,
) -> Iterator[SourceCandidate]:
    """Yield the files below a root that have one of the suffixes and are recognised; hidden folders are not entered."""
    for folder, folders, names in os.walk(root, onerror=onerror):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(folder, name) for name in sorted(names) if name.endswith(suffixes)):
            if (candidate := sniff(path, read_beginning(path))) is not None:
                yield candidate
