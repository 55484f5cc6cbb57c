"""Goose: a database of all sessions, and one JSON Lines file per session in versions before 1.10."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="goose",
    title="Goose",
    parser=1,
    fields=(
        "working_dir",
        "message_count",
        "accumulated_total_tokens",
        "toolRequest",
        "toolCall",
        "toolResult",
        "schedule_id",
    ),
    is_database=True,
    roots=named_folders(
        "goose", "$GOOSE_PATH_ROOT/data/sessions", "{data}/goose/sessions", "{config}/Block/goose/data/sessions"
    ),
    option="goose-dir",
    resume_command=lambda native_id: ["goose", "session", "--resume", "--session-id", native_id],
    **lazy_imports(
        "everturn.sources.goose.reader", "find", "sniff", "view", "workspace", "unpack", reader="GooseReader"
    ),
)
