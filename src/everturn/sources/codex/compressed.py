"""Compressed rollouts: a container whose one conversation is the stream that comes out.

A file that breaks off, or is damaged, gives what can be read of it up to there.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everturn.sources import Member, SourceCandidate
from everturn.sources.codex.find import COMPRESSED, HEAD

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
