"""Data that an agent has compressed with Zstandard."""

from __future__ import annotations

import sys
from typing import Any


def zstd_module() -> Any:
    """Return the module of the standard library, or its backport for older versions of Python."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def unpack_zstd(data: bytes, largest: int) -> bytes | None:
    """Return the content of one frame; None if it is damaged or larger than `largest` bytes."""
    zstd = zstd_module()
    try:
        decompressor = zstd.ZstdDecompressor()
        found: bytes = decompressor.decompress(data, largest)
        return found if decompressor.eof else None
    except (zstd.ZstdError, EOFError):
        return None
