"""aider: one `.aider.chat.history.md` per repository, to which every session is appended.

Reading order: `message` (who wrote a line, and one passage as a message), `reader` (a whole file, and where files are).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders, no_workspace

SOURCE = Source(
    name="aider",
    title="aider",
    parser=3,
    workspace=no_workspace,
    folder_of=lambda path: str(path.parent) if path.is_absolute() else "",
    roots=named_folders("aider", "$AIDER_CHAT_HISTORY_FILE", "~/.aider.chat.history.md", files=True),
    option="aider-dir",
    # aider reads back the whole history file of the repository, not one session.
    resume_command=lambda native_id: ["aider", "--restore-chat-history"],
    **lazy_imports("everturn.sources.aider.reader", "find", "sniff", "view", reader="AiderReader"),
)
