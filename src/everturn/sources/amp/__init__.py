"""Amp: one thread per JSON document in `~/.local/share/amp/threads`.

A thread has its messages in the shape of a model provider's interface. The content of a result is its `run`: a status with a
result, an error or a reason. Tokens are part of each answer; threads from before 2026 list them in a ledger.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="amp",
    title="Amp",
    parser=1,
    fields=(
        "agentMode",
        "created",
        "env",
        "messageId",
        "toolUseID",
        "usageLedger",
        "cacheReadInputTokens",
        "userState",
        "sentAt",
    ),
    roots=named_folders("amp", "$AMP_DATA_DIR/threads", "{data}/amp/threads", "{editor}/globalStorage/sourcegraph.amp/threads3"),
    option="amp-dir",
    **lazy_imports("everturn.sources.amp.reader", "find", "sniff", "workspace", "view", "resume_command", reader="AmpReader"),
)  # fmt: skip
