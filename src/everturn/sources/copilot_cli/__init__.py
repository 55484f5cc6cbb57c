"""Copilot CLI: sessions in `~/.copilot/session-state`, one event per line.

Reading order: `message` (one event as a message), `reader` (a whole session, and where sessions are).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import

SOURCE = Source(
    name="copilot_cli",
    title="Copilot CLI",
    parser=1,
    roots=lazy_import("everturn.sources.copilot_cli.reader:roots"),
    find=lazy_import("everturn.sources.copilot_cli.reader:find"),
    sniff=lazy_import("everturn.sources.copilot_cli.reader:sniff"),
    reader=lazy_import("everturn.sources.copilot_cli.reader:CopilotReader"),
    view=lazy_import("everturn.sources.copilot_cli.message:view"),
    workspace=lazy_import("everturn.sources.copilot_cli.reader:workspace"),
    option="copilot-dir",
    # A subagent cannot be resumed by itself: its parent session is.
    resume_command=lambda native_id: ["copilot", f"--resume={native_id.partition('/')[0]}"],
)
