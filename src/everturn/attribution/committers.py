"""Which sessions made a commit: those whose output shows its id after a command that commits.

Who committed is not who wrote: a session often commits what others edited. It decides one thing only: edits made after
the author time of a commit count if their session shows that it amended the commit.
"""

from __future__ import annotations

from msgspec import Struct

from everturn.derive.commits import find_commits
from everturn.model.archive import Session
from everturn.sessions.messages import Records, Sources
from everturn.store.contract import IndexQuery, Store
from everturn.text.terms import terms

_LENGTHS = (7, 8, 9, 10, 11, 12, 40)
_MOST = 12


class Committer(Struct, frozen=True):
    """A session that made a commit, and whether by amending."""

    session: Session
    seq: int
    amends: bool


class CommitterFinder:
    """Finds the sessions that made commits, each commit once."""

    def __init__(self, store: Store, sources: Sources) -> None:
        self._store, self._sources = store, sources
        self._known: dict[str, list[Committer]] = {}

    def find(self, sha: str) -> list[Committer]:
        """Return the sessions that show that they made a commit."""
        if sha not in self._known:
            self._known[sha] = self._search(sha)
        return self._known[sha]

    def _search(self, sha: str) -> list[Committer]:
        phrases = tuple(tuple(terms(sha[:length])) for length in _LENGTHS)
        query = IndexQuery((tuple(phrase for phrase in phrases if phrase),), fields=("tool_output",), limit=_MOST)
        found = (self._check(hit.session, hit.seq, sha) for hit in self._store.search(query) if hit.seq >= 0)
        return [one for one in found if one is not None]

    def _check(self, number: int, seq: int, sha: str) -> Committer | None:
        """Read the call whose result is at `seq`, and whether it made the commit."""
        session = self._store.session(number)[0]
        records = Records(self._store, self._sources, session, until=0)
        for call in (one for one in self._store.calls_answered(number, seq) if one.kind == "shell"):
            start, result = records.start(call), records.result(call)
            if start is None or result is None:
                continue
            for commit in find_commits(start, result.text, call.status == "ok"):
                if commit.hash and sha.startswith(commit.hash):
                    return Committer(session, call.seq, commit.amends)
        return None
