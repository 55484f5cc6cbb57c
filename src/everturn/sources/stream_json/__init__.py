"""The output of `claude -p --output-format stream-json`: one JSON record per line, saved by the program that ran it.

There is no folder to search: such captures are wherever people put them.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="stream_json",
    title="Claude Code stream-json",
    parser=1,
    marks_failures=True,
    fields=(
        "session_id",
        "parent_tool_use_id",
        "num_turns",
        "total_cost_usd",
        "mcp_servers",
        "apiKeySource",
        "duration_api_ms",
        "clientVersion",
    ),
    roots=named_folders("stream_json"),
    option="stream-json-dir",
    resume_command=lambda native_id: ["claude", "--resume", native_id],
    **lazy_imports("everturn.sources.stream_json.reader", "find", "sniff", "view", "workspace", reader="StreamReader"),
)
