"""The journal of a conversation that everturn itself runs: one record per line, written straight into the archive.

There is no folder to search: journals are in the archive, at paths `journal:SESSION` that name no file on disk. An exported
journal is recognised by its first line and reads the same. `everturn.loop.journal` writes them.
"""

from __future__ import annotations

from everturn.sources.contract import Source, lazy_imports, named_folders

SOURCE = Source(
    name="journal",
    title="everturn journal",
    parser=2,
    keeps_words=True,
    marks_failures=True,
    fields=("journal", "at", "holder", "wire", "gauge"),
    roots=named_folders("journal"),
    **lazy_imports("everturn.sources.journal.reader", "find", "sniff", "view", "workspace", reader="JournalReader"),
)
