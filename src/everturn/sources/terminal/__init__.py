"""Terminal recordings: what a full-screen agent drew, read as turns.

A recording is a container. Its bytes are kept, and each session seen in it is written out as lines, one for each thing that
was drawn, with the lines of the clean transcript and the bytes of the recording it rests on. Read in this order: `transcript`
(what a recording comes down to), `screen` (the emulator), `views` (screens joined into text), `dialects` (whose screens they
are), `rows` (text read as messages), `reader` (a session as lines).
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_import, lazy_imports, named_folders

NAME = "terminal"

SOURCE = Source(
    name=NAME,
    title="Terminal recordings",
    parser=4,
    rank=-1,  # a text may show a terminal; every text format with a beginning of its own comes first
    roots=named_folders(NAME),
    **lazy_imports(
        "everturn.sources.terminal.reader",
        "view",
        "workspace",
        "unpack",
        find="find_recordings",
        reader="TerminalReader",
    ),
    sniff=lazy_import("everturn.sources.terminal.recordings:sniff"),
    option="terminal-dir",
    takes="container",
)
