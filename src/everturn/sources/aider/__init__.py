"""aider: one `.aider.chat.history.md` per repository, to which every session is appended.

Read first: `find` (where files are), `lines` (who wrote a line), `message` (a passage by itself), `reader` (passages
together).
"""

from __future__ import annotations

from everturn.model.conversation import Message
from everturn.sources import Found, Reader, Source
from everturn.sources.aider.find import NAME, find, roots, sniff


def _reader(found: Found, state: bytes) -> Reader:
    from everturn.sources.aider.reader import HistoryReader

    return HistoryReader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.aider.message import view

    return view(record)


def _workspace(head: bytes) -> str:
    """The file does not say where it lies."""
    return ""


def _resume_command(native_id: str) -> list[str]:
    """The command that goes on in a repository: aider reads back its whole history file, not one session."""
    return ["aider", "--restore-chat-history"]


SOURCE = Source(
    name=NAME,
    title="aider",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=_view,
    workspace=_workspace,
    option="aider-dir",
    resume_command=_resume_command,
)
