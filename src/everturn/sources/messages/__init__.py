"""Message lists of any program, as they went to a model provider: JSON or JSONL, in the shapes of the common interfaces.

The last resort: many formats hold such messages, so this source ranks below all others and is found by `add` only, never
by looking into folders. Read first: `shapes` (what is a message, what holds them), `message`, `reader`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from everturn.sources.contract import SearchPlaces, Source, SourceCandidate, lazy_import, no_workspace

NAME = "messages"


def _roots(places: SearchPlaces) -> list[Path]:
    """None: a list of messages may be anywhere, and be anything's."""
    return []


def _find(root: Path) -> Iterator[SourceCandidate]:
    """Nothing: what other formats do not know is recognised file by file."""
    return iter(())


def _sniff(path: Path, head: bytes) -> SourceCandidate | None:
    """What a file is, given its first bytes; None when it is not clearly a list of messages."""
    if head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in (b"[", b"{"):
        return None
    from everturn.sources.messages.message import holds_messages

    return SourceCandidate(path, "main", f"{path.stem}@{path.parent.name}") if holds_messages(head) else None


SOURCE = Source(
    name=NAME,
    title="Message lists",
    parser=1,
    roots=_roots,
    find=_find,
    sniff=_sniff,
    reader=lazy_import("everturn.sources.messages.reader:MessagesReader"),
    view=lazy_import("everturn.sources.messages.message:view"),
    workspace=no_workspace,
    rank=-1,
)
