"""Where a client compacted a session it wrote a summary to go on with: which names more of what follows, that or ours?

Both are held against the files that the calls after the compaction touch and that had stood in the session before. Our
document is made from the turns before the one in which the summary stands, so it knows no more than the client did, and has
4,000 tokens; the summary has what it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.restore.cutting import Cut, cut_at
from benchmarks.restore.measuring import Score, files_to_come
from everturn.restore.markdown import document_markdown
from everturn.restore.mechanical import build_document
from everturn.sessions.messages import read_messages
from everturn.sources.contract import all_sources
from everturn.store.contract import SessionFilter, Store
from everturn.text.tokens import estimate_tokens

BUDGET = 4_000
_LEAST = 400  # characters: a title is no summary


@dataclass(frozen=True)
class Comparison:
    """One summary of a client beside our document."""

    theirs: Score
    ours: Score
    tokens: int  # of theirs


def comparisons(store: Store) -> Iterator[Comparison]:
    """Every compaction after which files were touched that had appeared before."""
    sources = all_sources()
    for session, text in store.sessions(SessionFilter(), limit=100_000)[0]:
        for row in [one for one in store.messages(session.id) if one.kind == "summary"]:
            words = _words(store, session.id, row.seq)
            cut = cut_at(store, session, text.workspace, row.turn)
            if len(words) < _LEAST or not row.turn or not cut.calls:
                continue
            at = Cut(store, session, cut.path, text.workspace, row.turn, row.start)
            document = document_markdown(build_document(store, sources, session, row.turn - 1), str, BUDGET)
            theirs, ours = files_to_come(words, at), files_to_come(document, at)
            if theirs.all:
                yield Comparison(theirs, ours, estimate_tokens(words))


def _words(store: Store, session: int, seq: int) -> str:
    row = store.session(session)[0]
    for _, message in read_messages(store, all_sources(), row, seq, seq):
        return "\n".join(block.text for block in message.blocks)
    return ""
