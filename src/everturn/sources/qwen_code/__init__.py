"""Qwen Code: sessions in `~/.qwen/projects`, one record per line, and the subagents of each session beside them.

Records have the envelope of Claude Code and the content of Gemini. Earlier clients wrote Gemini documents, which the
format `gemini` reads.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="qwen_code",
    title="Qwen Code",
    parser=2,
    marks_failures=True,
    # The first three are also fields of Claude Code: with `parts`, a session shows more of these than of its fields.
    fields=(
        "parentUuid",
        "gitBranch",
        "isSidechain",
        "parts",
        "systemPayload",
        "usageMetadata",
        "toolCallResult",
        "contextWindowSize",
        "functionCall",
        "functionResponse",
    ),
    roots=named_folders("qwen_code", "$QWEN_RUNTIME_DIR", "$QWEN_HOME", "~/.qwen"),
    option="qwen-dir",
    resume_command=lambda native_id: ["qwen", "--resume", native_id],
    **lazy_imports(
        "everturn.sources.qwen_code.reader", "find", "sniff", "workspace", "view", "original", reader="QwenReader"
    ),
)
