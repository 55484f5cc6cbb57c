"""Sessions of the corpus, cut at three fifths of their turns: what a document is made from, and what comes after.

The corpus is taken into an archive as `everturn add` does it. Only the place of the cut is taken from the archive; what lies
on either side of it is read from the raw file (`benchmarks.restore.truth`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.processes import ROOT
from benchmarks.restore.truth import READERS, Call, Truth, truth_of
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.model.archive import Session
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, Store, open_store

CORPUS = (ROOT.parent / "shared" / "corpus").resolve()
LEAST_TURNS = 10
SHARE = 0.6


@dataclass(frozen=True)
class Cut:
    """A session and where it is cut: the first `turns` turns, which end at byte `offset` of its file."""

    store: Store
    session: Session
    path: Path
    workspace: str
    turns: int
    offset: int

    @cached_property
    def data(self) -> bytes:
        """The raw file."""
        return self.path.read_bytes()

    @cached_property
    def calls(self) -> list[Call]:
        """Every call of the session; none where the benchmark cannot read its format."""
        reader = READERS.get(self.path.relative_to(CORPUS).parts[0])
        return reader(self.data) if reader is not None else []

    @cached_property
    def before(self) -> Truth:
        """What the first part amounts to."""
        return truth_of([call for call in self.calls if call.at < self.offset], self.workspace)

    @cached_property
    def after(self) -> Truth:
        """What the rest amounts to."""
        return truth_of([call for call in self.calls if call.at >= self.offset], self.workspace)


def archive(folder: Path) -> Store:
    """The whole corpus in an archive."""
    folder.mkdir(parents=True, exist_ok=True)
    store = open_store(str(folder / "corpus.db"))
    places = SearchPlaces(folder, {}, "linux")
    add_paths(SyncJob(store, all_sources(), places, Policy(), "here", "me", lambda: 1_700_000_000_000), [CORPUS])
    return store


def cuts(store: Store, least: int = LEAST_TURNS, share: float = SHARE) -> Iterator[Cut]:
    """Every session that is long enough, cut."""
    rows, _ = store.sessions(SessionFilter(), limit=100_000)
    for session, text in rows:
        if session.n_turns >= least:
            turns = int(session.n_turns * share)
            yield cut_at(store, session, text.workspace, turns)


def cut_at(store: Store, session: Session, workspace: str, turns: int) -> Cut:
    """A session cut behind so many turns."""
    following = store.turns(session.id, turns, turns)
    row = next(store.messages(session.id, following[0].first_seq), None) if following else None
    file, version = store.file_by_id(store.version(session.version).source)
    offset = row.start if row is not None else version.size
    return Cut(store, session, Path(file.path.partition("#")[0]), workspace, turns, offset)
