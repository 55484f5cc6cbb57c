"""Zed: threads of the agent panel in a database, each as one compressed document."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders, no_workspace

SOURCE = Source(
    name="zed",
    title="Zed",
    parser=1,
    is_database=True,
    roots=named_folders("zed", "{data}/zed/threads", "~/Library/Application Support/Zed/threads"),
    option="zed-dir",
    workspace=no_workspace,
    **lazy_imports("everturn.sources.zed.reader", "find", "sniff", "view", "reader", "unpack"),
)
