"""Markdown with speaker headings: conversations as browser extensions, chat exports and people's own scripts save them.

Reading order: `layout` (headings, fences, and which files are conversations), `header` (facts at the beginning, times),
`actions` (lines that say what
the agent did), `message` (one section as a message), `reader` (a whole file, and where files are).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, lazy_imports, named_folders

SOURCE = Source(
    name="headed_markdown",
    title="Markdown with speaker headings",
    parser=2,
    view=lazy_import("everturn.sources.headed_markdown.message:view"),
    roots=named_folders("headed_markdown"),
    option="markdown-dir",
    rank=-3,  # every format with a layout of its own comes first
    **lazy_imports("everturn.sources.headed_markdown.reader", "find", "sniff", "workspace", reader="HeadedReader"),
)
