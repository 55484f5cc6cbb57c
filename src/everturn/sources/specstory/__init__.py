"""SpecStory: sessions of many agents saved as Markdown in `.specstory/history` of a project.

Read first: `find` (where files are), `sections` (where a message begins), `message` (a section by itself), `tooluse`,
`reader` (sections together).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, no_workspace
from everturn.sources.specstory.reader import NAME, find, roots, sniff

SOURCE = Source(
    name=NAME,
    title="SpecStory",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=lazy_import("everturn.sources.specstory.reader:SpecstoryReader"),
    view=lazy_import("everturn.sources.specstory.message:view"),
    workspace=no_workspace,
    option="specstory-dir",
)
