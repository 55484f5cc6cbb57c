"""OpenTelemetry GenAI spans as OTLP JSON, one request per line: sessions out of traces, and traces out of sessions.

Spans of the GenAI conventions are read (1.37 and later, content on the spans), and those of OpenInference. One conversation
is a session. docs/standards.md lists what the conventions cannot hold.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, lazy_imports, no_candidates, no_folders

SOURCE = Source(
    name="otel",
    title="OpenTelemetry GenAI spans",
    parser=1,
    fields=(
        "resourceSpans",
        "scopeSpans",
        "spans",
        "traceId",
        "spanId",
        "startTimeUnixNano",
        "stringValue",
        "parentSpanId",
    ),
    roots=no_folders,
    find=no_candidates,
    workspace=lazy_import("everturn.sources.toolkit.json_document:workspace"),
    **lazy_imports("everturn.sources.otel.reader", "sniff", "view", "reader", "unpack"),
    write=lazy_import("everturn.sources.otel.writer:write"),
    write_pieces=lazy_import("everturn.sources.otel.writer:write_pieces"),
)
