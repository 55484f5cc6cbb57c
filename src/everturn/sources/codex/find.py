"""Finds rollouts on disk, and knows them by their content wherever else they lie.

    <home>/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl       one per session, subagents' too
    <home>/archived_sessions/rollout-<time>-<id>.jsonl         put away by the human
    … .jsonl.zst                                               compressed by the client when they are old

`<home>` is CODEX_HOME or `~/.codex`. Folders behind symbolic links are not entered, except these two themselves. A folder
that cannot be listed does not stop the rest: `find` gives all it can reach and raises the `OSError` of that folder at the
end.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources import SearchPlaces, SourceCandidate, existing_folders, read_beginning

NAME = "codex"
HEAD = 64 << 10
COMPRESSED = ".zst"

_FOLDERS = ("sessions", "archived_sessions")
_ROLLOUT = re.compile(
    r"rollout-.*?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl(\.zst)?", re.IGNORECASE
)
_SCREEN_LOG = "/screen-log"
_ZSTD = b"\x28\xb5\x2f\xfd"
_DEEPEST = 12


def roots(places: SearchPlaces) -> list[Path]:
    """Existing folders: named by the user, by the environment, and the usual one; each once, whatever leads to it."""
    wanted = [*places.extra.get(NAME, ())]
    named = places.env.get("CODEX_HOME", "").strip()
    if named:
        wanted.append(places.home / named[2:] if named.startswith(("~/", "~\\")) else Path(named))
    return existing_folders([*wanted, places.home / ".codex"])


def find(root: Path) -> Iterator[SourceCandidate]:
    """All rollouts below a root: the client's folder, one of those in it, or any folder with rollouts."""
    starts = [root / name for name in _FOLDERS if (root / name).is_dir()] or [root]
    failures: list[OSError] = []
    for start in starts:
        yield from _walk(str(start), failures, 0)
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    if head.startswith(_ZSTD):
        return _sniff_compressed(path, head)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")[:1] != b"{":
        return None
    from everturn.sources.codex import sniffing

    known = sniffing.file_kind(head)
    if known is None:
        return None
    named = _ROLLOUT.fullmatch(path.name)
    name = known.native_id or (named[1].lower() if named else path.name.partition(".")[0])
    return SourceCandidate(path, "main", name + _SCREEN_LOG if known.is_screen_log else name)


def workspace(head: bytes) -> str:
    """The working folder that a file names first; "" when its beginning names none."""
    from everturn.sources.codex import sniffing

    return sniffing.sniff_workspace(head)


def is_screen_log(found: SourceCandidate) -> bool:
    """Whether this is the log of the terminal program, not a rollout."""
    return found.native_id.endswith(_SCREEN_LOG)


def resume_command(native_id: str) -> list[str]:
    """The command that goes on with a session."""
    return ["codex", "resume", native_id.removesuffix(_SCREEN_LOG)]


def _sniff_compressed(path: Path, head: bytes) -> SourceCandidate | None:
    from everturn.sources.codex.compressed import decompress_head

    found = sniff(path, decompress_head(head))
    return SourceCandidate(path, "container", found.native_id) if found is not None else None


def _walk(folder: str, failures: list[OSError], depth: int) -> Iterator[SourceCandidate]:
    folders: list[str] = []
    for entry in _rollouts(folder, folders, failures):
        found = _file(entry)
        if found is not None:
            yield found
    if depth < _DEEPEST:
        for path in folders:
            yield from _walk(path, failures, depth + 1)


def _rollouts(folder: str, folders: list[str], failures: list[OSError]) -> list[os.DirEntry[str]]:
    """The files in a folder that may be ours; its folders are added to `folders`."""
    files: dict[str, os.DirEntry[str]] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.name.endswith((".jsonl", ".jsonl" + COMPRESSED)):
                    files[entry.name] = entry
    except OSError as failure:
        failures.append(failure)
    # While the client packs or unpacks a rollout both are there; the plain one is the one it goes on with.
    return [
        entry
        for name, entry in files.items()
        if not (name.endswith(COMPRESSED) and name.removesuffix(COMPRESSED) in files)
    ]


def _file(entry: os.DirEntry[str]) -> SourceCandidate | None:
    if entry.is_symlink() and not entry.is_file():
        return None
    named = _ROLLOUT.fullmatch(entry.name)
    if named is None:
        return sniff(Path(entry.path), read_beginning(entry.path))
    return SourceCandidate(Path(entry.path), "container" if named[2] else "main", named[1].lower())
