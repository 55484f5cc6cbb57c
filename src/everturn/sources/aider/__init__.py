"""aider: one `.aider.chat.history.md` per repository, to which every session is appended.

Read first: `find` (where files are), `lines` (who wrote a line), `message` (a passage by itself), `reader` (passages
together).
"""

from __future__ import annotations

from everturn.sources.aider.reader import NAME, find, roots, sniff
from everturn.sources.contract import Source, lazy_import, no_workspace


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
    reader=lazy_import("everturn.sources.aider.reader:AiderReader"),
    view=lazy_import("everturn.sources.aider.message:view"),
    workspace=no_workspace,
    option="aider-dir",
    resume_command=_resume_command,
)
