"""How an exported journal is known: by its first line, which says that it is one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from everturn.sources import SourceCandidate, read_beginning

NAME = "journal"
_MARK = b'"journal":'


def find(root: Path) -> Iterator[SourceCandidate]:
    """Exported journals in a folder and its folders."""
    failures: list[OSError] = []
    for folder, folders, names in os.walk(root, onerror=failures.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(folder, name)
            if name.endswith(".jsonl") and (found := sniff(path, read_beginning(path))) is not None:
                yield found
    if failures:
        raise failures[0]


def sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    header = _header(head)
    return SourceCandidate(path, "main", header["id"], header["parent"]) if header is not None else None


def workspace(head: bytes) -> str:
    """The working folder that the first line names."""
    return (_header(head) or {}).get("workspace", "")


def _header(head: bytes) -> dict[str, str] | None:
    line = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]
    if _MARK not in line or not line.startswith(b"{"):
        return None
    from everturn.sources.foreign import word
    from everturn.sources.linewise import records

    found: list[dict[str, Any]] = records(line)
    first = found[0] if found else {}
    if first.get("type") != "session" or not isinstance(first.get("journal"), int) or not word(first.get("id")):
        return None
    return {key: word(first.get(key)) for key in ("id", "parent", "workspace")}
