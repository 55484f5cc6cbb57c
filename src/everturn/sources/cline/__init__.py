"""Cline and Roo Code: task folders of the editor extension, one JSON document for what the model was told.

The conversation of a task is `api_conversation_history.json`. `ui_messages.json`, what the human was shown, is read as the
conversation only where that is missing; beside it, it is a note about the task and gives what the other lacks: thoughts,
tokens and errors. `task_metadata.json` is a note too.

Read first: `find` (where files are), `marks` (what the extension puts around words), `calls`, `history`, `panel`, `reader`.
"""

from __future__ import annotations

from everturn.sources.cline.files import NAME, find, roots, sniff, workspace
from everturn.sources.contract import Source, lazy_import

SOURCE = Source(
    name=NAME,
    title="Cline and Roo Code",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.cline.reader:reader"),
    view=lazy_import("everturn.sources.cline.reader:view"),
    workspace=workspace,
    option="cline-dir",
)
