"""Large results: the whole text is kept in the archive piece by piece, and the journal holds its beginning and its end.

A result of many megabytes does not fit into any request, and a journal that held it would read it again at every start. It
becomes a file of the archive of its own, `result:SESSION/KEY`, which the shortened text names; `read_large_result` gives it
back. Search knows the shortened text. Forgetting the session erases the file too. In mode `redacted` only the shortened text
is kept, because a secret could be cut in two by the pieces.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

import msgspec

from everturn.capture.file_reader import FilePiece, OpaqueReader, ReaderStart, empty_result
from everturn.capture.scan import FileCandidate
from everturn.capture.writer import ArchiveWriter, write_piece
from everturn.loop.journal import Journal
from everturn.loop.journal_state import AGENT
from everturn.model.archive import FILE, FRAMEWORK, FrameworkData, KeptRow, Version
from everturn.sources.contract import Source, SourceCandidate, no_workspace
from everturn.store.contract import Store

#: Characters of a result that is kept by reference, of its beginning, and of its end.
LARGE, HEAD, TAIL = 1 << 20, 24_000, 8_000
_PIECE = 1 << 20  # characters

#: The format of such files. It is not registered, so nothing reads it.
_SOURCE = Source(
    name="result text",
    title="Large results of tools",
    parser=0,
    roots=lambda places: [],
    find=lambda root: iter(()),
    sniff=lambda path, head: None,
    reader=lambda found, state: OpaqueReader(),
    view=lambda record: None,
    workspace=no_workspace,
)


def keep_large_result(journal: Journal, key: str, text: str) -> str:
    """Return the text for the journal: a large one is kept as a file and shortened. `key` is unique in the session."""
    if len(text) <= LARGE or getattr(journal, "store", None) is None:
        return text
    name = f"result:{journal.session}/{key}"
    if journal.is_masked:
        where = "the rest is not kept"
    else:
        _write_file(journal, name, text)
        where = f"the whole is in the archive as {name}"
    return f"{text[:HEAD]}\n[… {len(text) - HEAD - TAIL:,} of {len(text):,} characters are left out; {where} …]\n{text[-TAIL:]}"


def read_large_result(store: Store, name: str) -> Iterator[str]:
    """Yield the pieces of a large result, by the name that its shortened text gives."""
    found = store.file("", name)
    decoder, start = codecs.getincrementaldecoder("utf-8")("surrogatepass"), 0
    while found is not None and start < found[1].size:
        data = store.read_raw(found[1].id, start, min(_PIECE, found[1].size - start))
        start += len(data)
        yield decoder.decode(data, start >= found[1].size)


def _write_file(journal: Journal, name: str, text: str) -> None:
    store = journal.store
    with journal.alone, store.write():
        if (known := store.file("", name)) is not None:  # of an attempt that was killed
            store.delete_file(known[0].id)
        candidate = FileCandidate(_SOURCE, SourceCandidate(Path(name)), None, None, None)
        writer = ArchiveWriter(store, "", "", journal.clock())
        start = ReaderStart(candidate, "full", Version(number=1), "first")
        for at in range(0, len(text), _PIECE):
            data = text[at : at + _PIECE].encode("utf-8", "surrogatepass")
            before = start.version.size
            end = before + len(data)
            changes: dict[str, int | bytes] = {"offset": end, "size": end, "file_size": end, "parsed": end, "parser": 0}
            write_piece(
                writer, FilePiece(start, data, before, empty_result(), before, changes, at + _PIECE >= len(text))
            )
        value = msgspec.json.encode(FrameworkData(FILE, name)).decode()
        store.keep(KeptRow(FRAMEWORK, AGENT, journal.session, f"{FILE}/{name}", value, journal.clock()))
