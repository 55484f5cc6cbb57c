"""Zed: threads of the agent panel in a database, each as one compressed document."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, lazy_imports, named_folders

SOURCE = Source(
    name="zed",
    title="Zed",
    parser=1,
    is_database=True,
    roots=named_folders("zed", "{data}/zed/threads", "~/Library/Application Support/Zed/threads"),
    option="zed-dir",
    workspace=lazy_import("everturn.sources.toolkit.json_document:workspace"),
    **lazy_imports("everturn.sources.zed.reader", "find", "sniff", "view", "reader", "unpack"),
)
