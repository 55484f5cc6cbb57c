"""What `claude -p --output-format stream-json` prints: one JSON record per line, kept by whoever ran it.

There is no folder to look in: such captures are where people put them. Read first: `records`, `reader`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from everturn.sources.contract import Source, SourceCandidate, lazy_import, named_folders, read_beginning

NAME = "stream_json"
_TYPES = re.compile(rb'"type"\s*:\s*"(system|assistant|user|result|stream_event)"')
_SESSION = re.compile(rb'"session_id"\s*:\s*"([\w-]{1,100})"')
_HEAD = 64 << 10


def _find(root: Path) -> Iterator[SourceCandidate]:
    """Captures in a folder and its folders."""
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith((".jsonl", ".ndjson", ".json", ".log")):
                found = _sniff(Path(folder, name), read_beginning(Path(folder, name)))
                if found is not None:
                    yield found


def _sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not ours."""
    if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return None
    if not (_TYPES.search(head) and _SESSION.search(head)) and b'"clientVersion"' not in head:
        return None
    from everturn.sources.stream_json.reader import session_in

    session = session_in(head)
    return SourceCandidate(path, "main", session or path.stem) if session is not None else None


def _resume_command(native_id: str) -> list[str]:
    """The command that goes on with a session."""
    return ["claude", "--resume", native_id]


SOURCE = Source(
    name=NAME,
    title="Claude Code stream-json",
    parser=1,
    roots=named_folders(NAME),
    find=_find,
    sniff=_sniff,
    reader=lazy_import("everturn.sources.stream_json.reader:StreamReader"),
    view=lazy_import("everturn.sources.stream_json.reader:view"),
    workspace=lazy_import("everturn.sources.stream_json.reader:folder_in"),
    option="stream-json-dir",
    resume_command=_resume_command,
)
