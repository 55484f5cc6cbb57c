"""OpenTelemetry GenAI spans as OTLP, in JSON (one request per line) or protobuf: sessions out of traces, and the reverse.

Spans of the GenAI conventions are read (1.37 and later, content on the spans), and those of OpenInference. One conversation
is a session. docs/standards.md lists what the conventions cannot hold.
"""

from __future__ import annotations

from everturn.sources.contract import Source, WireForm, lazy_import, lazy_imports, no_candidates, no_folders

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
    **lazy_imports("everturn.sources.otel.writer", "write", "write_pieces"),
    wire=WireForm(
        path="/v1/traces",
        media_type="application/x-protobuf",
        pack=lazy_import("everturn.sources.otel.writer:pack"),
        split=lazy_import("everturn.sources.otel.reader:split"),
    ),
)
