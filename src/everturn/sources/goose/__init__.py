"""Goose: a database of all sessions, and one JSON Lines file per session in versions before 1.10."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import

SOURCE = Source(
    name="goose",
    title="Goose",
    parser=1,
    roots=lazy_import("everturn.sources.goose.reader:roots"),
    find=lazy_import("everturn.sources.goose.reader:find"),
    sniff=lazy_import("everturn.sources.goose.reader:sniff"),
    reader=lazy_import("everturn.sources.goose.reader:GooseReader"),
    view=lazy_import("everturn.sources.goose.reader:view"),
    workspace=lazy_import("everturn.sources.goose.reader:workspace"),
    unpack=lazy_import("everturn.sources.goose.reader:unpack"),
    is_database=True,
    option="goose-dir",
    resume_command=lambda native_id: ["goose", "session", "--resume", "--session-id", native_id],
)
