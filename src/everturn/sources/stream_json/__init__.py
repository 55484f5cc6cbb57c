"""The output of `claude -p --output-format stream-json`: one JSON record per line, saved by the program that ran it.

There is no folder to search: such captures are wherever people put them.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, named_folders

SOURCE = Source(
    name="stream_json",
    title="Claude Code stream-json",
    parser=1,
    roots=named_folders("stream_json"),
    find=lazy_import("everturn.sources.stream_json.reader:find"),
    sniff=lazy_import("everturn.sources.stream_json.reader:sniff"),
    reader=lazy_import("everturn.sources.stream_json.reader:StreamReader"),
    view=lazy_import("everturn.sources.stream_json.reader:view"),
    workspace=lazy_import("everturn.sources.stream_json.reader:workspace"),
    option="stream-json-dir",
    resume_command=lambda native_id: ["claude", "--resume", native_id],
)
