"""Copilot CLI: sessions in `~/.copilot/session-state`, one event per line.

Reading order: `message` (one event as a message), `reader` (a whole session, and where sessions are).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="copilot_cli",
    title="Copilot CLI",
    parser=1,
    fields=(
        "copilotVersion",
        "toolRequests",
        "interactionId",
        "transformedContent",
        "hookInvocationId",
        "parentId",
        "producer",
        "gitRoot",
    ),
    roots=named_folders("copilot_cli", "$COPILOT_HOME", "~/.copilot", "$XDG_STATE_HOME/.copilot"),
    option="copilot-dir",
    # A subagent cannot be resumed by itself: its parent session is.
    resume_command=lambda native_id: ["copilot", f"--resume={native_id.partition('/')[0]}"],
    **lazy_imports("everturn.sources.copilot_cli.reader", "find", "sniff", "workspace", "view", reader="CopilotReader"),
)
