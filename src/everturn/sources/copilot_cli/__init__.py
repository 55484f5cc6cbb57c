"""Copilot CLI: sessions in `~/.copilot/session-state`, one event per line.

Read first: `find` (where files are), `events` (what an event becomes), `reader` (events together).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import
from everturn.sources.copilot_cli.reader import NAME, find, resume_command, roots, sniff, workspace

SOURCE = Source(
    name=NAME,
    title="Copilot CLI",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.copilot_cli.reader:CopilotReader"),
    view=lazy_import("everturn.sources.copilot_cli.message:view"),
    workspace=workspace,
    option="copilot-dir",
    resume_command=resume_command,
)
