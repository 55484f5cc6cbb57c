"""How chunks of bytes are kept: zstd where that is smaller, else as they are. The first byte says which.

One `Packer` for each store: the compressor inside is used again and again and does not belong to two threads.
"""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Bytes = bytes | bytearray | memoryview

_PLAIN = b"\x00"
_ZSTD = b"\x01"
_LEVEL = 3


class Packer:
    """Packs and unpacks."""

    def __init__(self) -> None:
        self._compressor = zstd.ZstdCompressor(level=_LEVEL)

    def pack(self, data: Bytes) -> bytes:
        """The bytes as they are stored."""
        packed: bytes = self._compressor.compress(data, zstd.ZstdCompressor.FLUSH_FRAME)
        if len(packed) < len(data):
            return _ZSTD + packed
        return _PLAIN + bytes(data)

    def unpack(self, stored: bytes) -> bytes:
        """The bytes as they were. Raises ValueError when they cannot be had."""
        mark, rest = stored[:1], memoryview(stored)[1:]
        if mark == _PLAIN:
            return bytes(rest)
        if mark != _ZSTD:
            raise ValueError("unknown packing")
        try:
            data: bytes = zstd.decompress(rest)
        except zstd.ZstdError as failure:
            raise ValueError(str(failure)) from failure
        return data
