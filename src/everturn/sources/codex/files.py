"""Finds rollouts on disk, and knows them by their content wherever else they lie.

    <home>/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl       one per session, subagents' too
    <home>/archived_sessions/rollout-<time>-<id>.jsonl         put away by the human
    … .jsonl.zst                                               compressed by the client when they are old

`<home>` is CODEX_HOME or `~/.codex`. Folders behind symbolic links are not entered, except these two themselves. A folder
that cannot be listed does not stop the rest: `find` gives all it can reach and raises the `OSError` of that folder at the
end.

Knows a rollout, and what it says about itself, by its first bytes: also when the first line is longer than these.

Compressed rollouts: a container whose one conversation is the stream that comes out.

A file that breaks off, or is damaged, gives what can be read of it up to there.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from everturn.sources.codex.calls import folder_in
from everturn.sources.codex.records import HEADER, CodexRecord, open_record
from everturn.sources.contract import Member, SearchPlaces, SourceCandidate, existing_folders, read_beginning
from everturn.sources.toolkit.line_reader import Rec, mapping, records
from everturn.sources.toolkit.values import decode_value, strings, word

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

    known = file_kind(head)
    if known is None:
        return None
    named = _ROLLOUT.fullmatch(path.name)
    name = known.native_id or (named[1].lower() if named else path.name.partition(".")[0])
    return SourceCandidate(path, "main", name + _SCREEN_LOG if known.is_screen_log else name)


def workspace(head: bytes) -> str:
    """The working folder that a file names first; "" when its beginning names none."""

    return sniff_workspace(head)


def is_screen_log(found: SourceCandidate) -> bool:
    """Whether this is the log of the terminal program, not a rollout."""
    return found.native_id.endswith(_SCREEN_LOG)


def resume_command(native_id: str) -> list[str]:
    """The command that goes on with a session."""
    return ["codex", "resume", native_id.removesuffix(_SCREEN_LOG)]


def _sniff_compressed(path: Path, head: bytes) -> SourceCandidate | None:

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


#: The first line of a rollout that is cut off.
_BEGINNING = re.compile(rb'\s*\{"timestamp":"[^"]{10,40}","type":"session_meta","payload":\{')
_ID = re.compile(rb'"id":"([0-9a-fA-F-]{36})"')
_FOLDER = re.compile(rb'"cwd":("(?:[^"\\]|\\.){1,4096}")')
_WRAPPERS = frozenset(("response_item", "event_msg", "turn_context", "compacted"))


class CodexFileKind(NamedTuple):
    """What a file is."""

    native_id: str
    is_screen_log: bool = False


def file_kind(head: bytes) -> CodexFileKind | None:
    """What a file that begins like this is; None when it is not ours."""
    found = records(head)
    if not found:
        name = _ID.search(head)
        return CodexFileKind(name[1].decode().lower() if name else "") if _BEGINNING.match(head) else None
    if _is_screen_log(found[0]):
        return CodexFileKind(_configured_session(found), True)
    event = open_record(found[0])
    if event.outer == HEADER or (event.outer == "session_meta" and word(event.item.get("id"))):
        return CodexFileKind(word(event.item.get("id")).lower())
    return CodexFileKind("") if _is_wrapped(found[0]) else None


def sniff_workspace(head: bytes) -> str:
    """The working folder that a file names first; "" when its beginning names none."""
    for record in records(head):
        event = open_record(record)
        folder = word(event.item.get("cwd")) or _message_folder(event)
        if folder:
            return folder
    found = _FOLDER.search(head)
    return word(decode_value(found[1])) if found is not None else ""


def _message_folder(event: CodexRecord) -> str:
    if event.kind != "message" or event.item.get("role") != "user":
        return ""
    return next(filter(None, map(folder_in, strings(event.item.get("content")))), "")


def _is_wrapped(record: Rec) -> bool:
    """A rollout that has lost its first line."""
    return (
        word(record.get("type")) in _WRAPPERS
        and isinstance(record.get("payload"), dict)
        and bool(record.get("timestamp"))
    )


def _is_screen_log(record: Rec) -> bool:
    return record.get("dir") == "meta" and record.get("kind") == "session_start" and isinstance(record.get("ts"), str)


def _configured_session(found: list[Rec]) -> str:
    messages = (mapping(mapping(record.get("payload")).get("msg")) for record in found)
    return next((word(one.get("session_id")) for one in messages if one.get("type") == "session_configured"), "")


_PIECE = 1 << 16


def unpack(found: SourceCandidate, path: Path) -> Iterator[Member]:
    """The rollout in a compressed file."""
    lines = _lines(path)
    first = next(lines, None)
    if first is None and path.stat().st_size:
        raise OSError("the compressed file is damaged from its beginning on")
    yield Member(found.path.name.removesuffix(COMPRESSED), _chain_lines(first, lines), native_id=found.native_id)


def decompress_head(head: bytes) -> bytes:
    """The first bytes of what comes out of the first bytes of a file."""
    zstd = _zstd()
    try:
        found: bytes = zstd.ZstdDecompressor().decompress(head, HEAD)
    except (zstd.ZstdError, EOFError):
        return b""
    return found


def _lines(path: Path) -> Iterator[bytes]:
    begun: list[bytes] = []
    for piece in _pieces(path):
        start = 0
        while (end := piece.find(b"\n", start) + 1) > 0:
            yield b"".join((*begun, piece[start:end]))
            begun.clear()
            start = end
        if start < len(piece):
            begun.append(piece[start:])
    if begun:
        yield b"".join(begun)


def _pieces(path: Path) -> Iterator[bytes]:
    """What comes out, piece by piece: a file may be several frames, one after the other."""
    zstd = _zstd()
    machine = zstd.ZstdDecompressor()
    with path.open("rb") as file:
        given = file.read(_PIECE)
        while given or not machine.needs_input:
            try:
                piece = machine.decompress(given, _PIECE)
            except zstd.ZstdError:
                return
            if piece:
                yield piece
            given = b""
            if machine.eof:
                given = machine.unused_data or file.read(_PIECE)
                machine = zstd.ZstdDecompressor()
            elif machine.needs_input:
                given = file.read(_PIECE)


def _chain_lines(first: bytes | None, lines: Iterator[bytes]) -> Iterator[bytes]:
    if first is not None:
        yield first
        yield from lines


def _zstd() -> Any:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd
