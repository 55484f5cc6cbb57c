"""Finds rollouts on disk, and recognizes them elsewhere by their first bytes, even when the first line is longer.

    <home>/sessions/YYYY/MM/DD/rollout-<time>-<id>.jsonl       one per session, subagents' too
    <home>/archived_sessions/rollout-<time>-<id>.jsonl         archived by the human
    … .jsonl.zst                                               compressed by the client when they are old
    <home>/memories/**/*.md, memories_v2/**/*.md               what the client remembers, some of it about one session
    <home>/goals_1.sqlite                                      the goals of sessions, unpacked into one part for each

`<home>` is CODEX_HOME or `~/.codex`. Folders behind symbolic links are not entered, except these two themselves. A folder
that cannot be listed does not stop the rest: `find` yields all it can reach and raises that folder's `OSError` at the end.

A compressed rollout is a container with one session: the decompressed stream. A file that breaks off or is damaged yields
its readable part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from everturn.sources.codex.calls import folder_in
from everturn.sources.codex.records import HEADER, CodexRecord, open_record
from everturn.sources.contract import Member, SearchPlaces, SourceCandidate, read_beginning
from everturn.sources.toolkit.file_search import find_files, find_in_folders
from everturn.sources.toolkit.line_reader import Rec, mapping, records
from everturn.sources.toolkit.values import decode_value, strings, word
from everturn.sources.toolkit.zstd_data import zstd_module

NAME = "codex"
HEAD = 64 << 10
COMPRESSED = ".zst"

_FOLDERS = ("sessions", "archived_sessions")
_ROLLOUT = re.compile(
    r"rollout-.*?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.jsonl(\.zst)?", re.IGNORECASE
)
_MEMORIES, _GOALS = ("memories", "memories_v2"), "goals_"
_CHANGING = frozenset(("tokens_used", "time_used_seconds", "updated_at_ms"))
_THREAD = re.compile(rb"^thread_id:\s*([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\s*$", re.IGNORECASE | re.MULTILINE)
_MEMORY_FOLDER = re.compile(rb"^cwd:\s*(\S.{0,4095}?)\s*$", re.MULTILINE)
_SCREEN_LOG = "/screen-log"
_ZSTD = b"\x28\xb5\x2f\xfd"
_DEEPEST = 12
#: A compressed rollout may expand to so many bytes, or times its size. Real ones expand 3 to 15 times.
_EXPANDED, _MOST_TIMES = 64 << 20, 100


def home_folder(places: SearchPlaces) -> Path:
    """Return the client's folder: CODEX_HOME with `~` expanded, or the default."""
    named = places.env.get("CODEX_HOME", "").strip()
    return places.expand(named) if named else places.home / ".codex"


def find(root: Path) -> Iterator[SourceCandidate]:
    """Yield all rollouts below a root: the client's folder, one of those in it, or any folder with rollouts."""
    yield from find_in_folders(root, _FOLDERS, _pick_file, deepest=_DEEPEST, in_order=False)
    for name in _MEMORIES:
        if (root / name).is_dir() and not (root / name).is_symlink():
            yield from find_files(root / name, partial(_pick_memory, root), deepest=_DEEPEST, in_order=False)
    for path in sorted(root.glob(f"{_GOALS}*.sqlite")) if (root / _FOLDERS[0]).is_dir() else ():
        if path.is_file() and not path.is_symlink():
            from everturn.sources.toolkit.sqlite_file import stamp

            yield SourceCandidate(path, "container", path.name, stamp=stamp(path))


def _pick_memory(root: Path, entry: os.DirEntry[str]) -> SourceCandidate | None:
    if not entry.name.endswith(".md") or not entry.is_file(follow_symlinks=False):
        return None
    path = Path(entry.path)
    return SourceCandidate(path, "meta", path.relative_to(root).as_posix())


def owner_of(path: Path) -> str:
    """Return the session that a memory is about, if its beginning names one."""
    named = _THREAD.search(read_beginning(path, 4096))
    return named[1].decode().lower() if named else ""


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    if head.startswith(_ZSTD):
        return _sniff_compressed(path, head)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n\0")[:1] != b"{":
        return None
    if (known := file_kind(head)) is None:
        return None
    named = _ROLLOUT.fullmatch(path.name)
    name = known.native_id or (named[1].lower() if named else path.name.partition(".")[0])
    return SourceCandidate(path, "main", name + _SCREEN_LOG if known.is_screen_log else name)


def is_screen_log(found: SourceCandidate) -> bool:
    """Return whether this is the log of the terminal program, not a rollout."""
    return found.native_id.endswith(_SCREEN_LOG)


def resume_command(native_id: str) -> list[str]:
    return ["codex", "resume", native_id.removesuffix(_SCREEN_LOG)]


def _sniff_compressed(path: Path, head: bytes) -> SourceCandidate | None:
    found = sniff(path, decompress_head(head))
    return SourceCandidate(path, "container", found.native_id) if found is not None else None


def _pick_file(start: Path, entry: os.DirEntry[str]) -> SourceCandidate | None:
    if not entry.name.endswith((".jsonl", ".jsonl" + COMPRESSED)) or (entry.is_symlink() and not entry.is_file()):
        return None
    # While the client packs or unpacks a rollout both are there; it continues the plain one.
    if entry.name.endswith(COMPRESSED) and os.path.lexists(entry.path.removesuffix(COMPRESSED)):
        return None
    if (named := _ROLLOUT.fullmatch(entry.name)) is None:
        return sniff(Path(entry.path), read_beginning(entry.path))
    return SourceCandidate(Path(entry.path), "container" if named[2] else "main", named[1].lower())


#: The beginning of a rollout whose first line is cut off.
_BEGINNING = re.compile(rb'\s*\{"timestamp":"[^"]{10,40}","type":"session_meta","payload":\{')
_ID = re.compile(rb'"id":"([0-9a-fA-F-]{36})"')
_FOLDER = re.compile(rb'"cwd":("(?:[^"\\]|\\.){1,4096}")')
_WRAPPERS = frozenset(("response_item", "event_msg", "turn_context", "compacted"))


class CodexFileKind(NamedTuple):
    """The session of a file, and whether the file is a screen log."""

    native_id: str
    is_screen_log: bool = False


def file_kind(head: bytes) -> CodexFileKind | None:
    """Classify a file by its first bytes; None when it is not Codex's."""
    if not (found := records(head)):
        name = _ID.search(head)
        return CodexFileKind(name[1].decode().lower() if name else "") if _BEGINNING.match(head) else None
    if _is_screen_log(found[0]):
        return CodexFileKind(_configured_session(found), True)
    record = open_record(found[0])
    if record.outer == HEADER or (record.outer == "session_meta" and word(record.item.get("id"))):
        return CodexFileKind(word(record.item.get("id")).lower())
    return CodexFileKind("") if _is_wrapped(found[0]) else None


def workspace(head: bytes) -> str:
    if head[:1] not in (b"{", b"\xef") and (noted := _MEMORY_FOLDER.search(head)):
        return os.fsdecode(noted[1])
    for record in map(open_record, records(head)):
        folder = word(record.item.get("cwd")) or _message_folder(record)
        if folder:
            return folder
    return word(decode_value(found[1])) if (found := _FOLDER.search(head)) is not None else ""


def _message_folder(record: CodexRecord) -> str:
    if record.kind != "message" or record.item.get("role") != "user":
        return ""
    return next(filter(None, map(folder_in, strings(record.item.get("content")))), "")


def _is_wrapped(record: Rec) -> bool:
    """Return whether a record is of a rollout that lost its first line."""
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
    return _unpack_goals(path) if found.path.name.startswith(_GOALS) else _unpack_rollout(found, path)


def _unpack_goals(path: Path) -> Iterator[Member]:
    """Yield the goal of each session, without the columns that change all the time."""
    from everturn.sources.toolkit.agent_program import line
    from everturn.sources.toolkit.sqlite_file import unpacked_snapshot

    with unpacked_snapshot(path) as database:
        rows = database.rows("SELECT * FROM thread_goals") if "thread_goals" in database.tables() else ()
        for row in sorted(rows, key=lambda row: word(row.get("thread_id"))):
            session = word(row.get("thread_id"))
            goal = {key: value for key, value in row.items() if key not in _CHANGING}
            yield Member(session, iter([line(goal)]), "meta", f"{session}/goal.json", session)


def _unpack_rollout(found: SourceCandidate, path: Path) -> Iterator[Member]:
    lines = _split_lines(path)
    if (first := next(lines, None)) is None and path.stat().st_size:
        raise OSError("the compressed file is damaged from its beginning on")
    name = found.path.name.removesuffix(COMPRESSED)
    yield Member(name, iter(()) if first is None else chain((first,), lines), native_id=found.native_id)


def decompress_head(head: bytes) -> bytes:
    """Decompress the first bytes of a file."""
    zstd = zstd_module()
    try:
        found: bytes = zstd.ZstdDecompressor().decompress(head, HEAD)
    except (zstd.ZstdError, EOFError):
        return b""
    return found


def _split_lines(path: Path) -> Iterator[bytes]:
    unfinished: list[bytes] = []
    _check_expansion(path)
    for piece in _decompress(path):
        start = 0
        while (end := piece.find(b"\n", start) + 1) > 0:
            yield b"".join((*unfinished, piece[start:end]))
            unfinished.clear()
            start = end
        if start < len(piece):
            unfinished.append(piece[start:])
    if unfinished:
        yield b"".join(unfinished)


def _check_expansion(path: Path) -> None:
    """Raise OSError if a file expands too far, before anything of it is kept."""
    most, total = max(_EXPANDED, _MOST_TIMES * path.stat().st_size), 0
    for piece in _decompress(path):
        total += len(piece)
        if total > most:
            raise OSError(None, f"it expands to more than {most >> 20} MB; it is not unpacked", str(path))


def _decompress(path: Path) -> Iterator[bytes]:
    """Yield the decompressed bytes; a file may be several frames, one after the other."""
    zstd = zstd_module()
    decompressor = zstd.ZstdDecompressor()
    with path.open("rb") as file:
        packed = file.read(_PIECE)
        while packed or not decompressor.needs_input:
            try:
                piece = decompressor.decompress(packed, _PIECE)
            except zstd.ZstdError:
                return
            if piece:
                yield piece
            packed = b""
            if decompressor.eof:
                packed = decompressor.unused_data or file.read(_PIECE)
                decompressor = zstd.ZstdDecompressor()
            elif decompressor.needs_input:
                packed = file.read(_PIECE)
