"""SpecStory: sessions of many agents saved as Markdown in `.specstory/history` of a project.

Reading order: `message` (the layout, tool calls, and one section as a message), `reader` (a whole file, and where files are).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, lazy_imports, named_folders, no_workspace

SOURCE = Source(
    name="specstory",
    title="SpecStory",
    parser=3,
    view=lazy_import("everturn.sources.specstory.message:view"),
    workspace=no_workspace,
    roots=named_folders("specstory"),
    option="specstory-dir",
    **lazy_imports("everturn.sources.specstory.reader", "find", "sniff", "folder_of", reader="SpecstoryReader"),
)
