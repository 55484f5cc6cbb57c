"""ATIF, the Agent Trajectory Interchange Format: one JSON document per trajectory, read and written.

Any version 1.x is read; 1.7 is written. What the standard has no field for is in `extra` under `everturn`, so that a session
that was written reads as the same session; docs/standards.md lists what is lost.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, no_candidates, no_folders, no_workspace

SOURCE = Source(
    name="atif",
    title="ATIF trajectory",
    parser=1,
    fields=(
        "schema_version",
        "steps",
        "step_id",
        "tool_call_id",
        "function_name",
        "source_call_id",
        "final_metrics",
        "reasoning_content",
        "trajectory_id",
    ),
    roots=no_folders,
    find=no_candidates,
    workspace=no_workspace,
    **lazy_imports("everturn.sources.atif.reader", "sniff", "view", "reader"),
    **lazy_imports("everturn.sources.atif.writer", "write", "write_pieces"),
)
