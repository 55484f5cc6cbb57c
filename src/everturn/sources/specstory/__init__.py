"""SpecStory: sessions of many agents saved as Markdown in `.specstory/history` of a project.

Read first: `find` (where files are), `sections` (where a message begins), `message` (a section by itself), `tooluse`,
`reader` (sections together).
"""

from __future__ import annotations

from everturn.model.conversation import Message
from everturn.sources import Found, Reader, Source
from everturn.sources.specstory.find import NAME, find, roots, sniff


def _reader(found: Found, state: bytes) -> Reader:
    from everturn.sources.specstory.reader import HistoryReader

    return HistoryReader(found, state)


def _view(record: bytes) -> Message | None:
    from everturn.sources.specstory.message import view

    return view(record)


def _workspace(head: bytes) -> str:
    """The file does not say where it lies."""
    return ""


SOURCE = Source(
    name=NAME,
    title="SpecStory",
    parser=1,
    roots=roots,
    find=find,
    sniff=sniff,
    reader=_reader,
    view=_view,
    workspace=_workspace,
    option="specstory-dir",
)
