"""Kimi CLI and its successor Kimi Code: one log of events per session and per subagent, named `wire.jsonl`.

Kimi CLI writes `{"timestamp", "message": {"type", "payload"}}`, Kimi Code writes `{"type", "time", …}`. Titles are in a file
beside the log, which is not read.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders, no_workspace

SOURCE = Source(
    name="kimi",
    title="Kimi CLI",
    parser=2,
    fields=(
        "protocol_version",
        "payload",
        "user_input",
        "token_usage",
        "return_value",
        "parent_tool_call_id",
        "stepUuid",
        "toolCallId",
        "toolCalls",
        "usageScope",
        "inputOther",
        "turnId",
    ),
    workspace=no_workspace,
    roots=named_folders("kimi", "$KIMI_SHARE_DIR", "$KIMI_CODE_HOME", "~/.kimi", "~/.kimi-code"),
    option="kimi-dir",
    resume_command=lambda native_id: ["kimi", "--session", native_id],
    **lazy_imports("everturn.sources.kimi.reader", "find", "sniff", "folder_of", "view", reader="KimiReader"),
)
