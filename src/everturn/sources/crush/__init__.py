"""Crush: a database of all sessions of a project, in `.crush` in the project's folder."""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders, no_workspace

SOURCE = Source(
    name="crush",
    title="Crush",
    parser=1,
    is_database=True,
    workspace=no_workspace,
    roots=named_folders("crush", "{working}/.crush"),
    option="crush-dir",
    **lazy_imports(
        "everturn.sources.crush.reader", "find", "sniff", "view", "folder_of", "unpack", reader="CrushReader"
    ),
)
