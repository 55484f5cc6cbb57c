"""A set in a real archive: taken in as `everturn add` does it, asked as the surfaces ask it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from benchmarks.recall.questions import Place
from everturn.capture.intake import SyncJob
from everturn.capture.policy import Policy
from everturn.capture.sync import add_paths
from everturn.errors import UsageError
from everturn.model.archive import Session
from everturn.model.conversation import Message
from everturn.model.vocabulary import SESSION_KINDS
from everturn.retrieval.meaning import MeaningSearch
from everturn.retrieval.scope import EVERYWHERE, SearchFilters
from everturn.retrieval.search import search
from everturn.sessions.messages import Sources, read_messages
from everturn.sources.contract import SearchPlaces, all_sources
from everturn.store.contract import SessionFilter, Store, open_store

#: How many messages are asked for, each with its snippet: enough to hold ten sessions nearly always.
DEPTH = 50
#: The same moment always: what is new to a ranking must not depend on the day of the measurement.
NOW = 1_780_000_000_000


def ranked(
    store: Store,
    sources: Sources,
    text: str,
    filters: SearchFilters = EVERYWHERE,
    meaning: MeaningSearch | None = None,
    now: int = NOW,
) -> list[tuple[int, int, float]]:
    """What the search core gives, best first: session, seq (-1: the session's own title or summary), score."""
    try:
        page = search(store, sources, text, filters, limit=DEPTH, now=now, meaning=meaning)
    except UsageError:  # a pasted text may say something in the language of requests that cannot be meant
        return []
    return [(one.session.id, one.row.seq if one.row else -1, one.score) for one in page.items]


@dataclass(frozen=True)
class Document:
    """A message with its words, as the simple methods see it."""

    scope: str
    place: Place
    message: Message

    @property
    def text(self) -> str:
        """All that is searched in it."""
        return text_of(self.message)

    @property
    def at(self) -> int:
        """When it was said; 0 where that is unknown."""
        return self.message.at or 0


def text_of(message: Message) -> str:
    """The texts of its blocks, one below the other."""
    return "\n".join(block.text for block in message.blocks if block.text)


class Archive:
    """The sessions of one set."""

    def __init__(self, store: Store, now: int = NOW) -> None:
        """`now` is the moment at which questions are asked."""
        self.store = store
        self.now = now
        self.sources = all_sources()

    @classmethod
    def of(cls, folder: Path, db: Path) -> Archive:
        """Take in everything below a folder."""
        archive = cls(open_store(str(db)))
        archive.take_in(folder)
        return archive

    def take_in(self, folder: Path) -> None:
        """Add everything below a folder, before anything is asked."""
        nobody = SearchPlaces(folder / "nobody", {}, "linux")
        job = SyncJob(self.store, dict(all_sources()), nobody, Policy(), "box", "ann", lambda: NOW)
        add_paths(job, [folder])

    def close(self) -> None:
        """The file stays."""
        self.store.close()

    def ask(self, text: str, scope: str, until: int | None = None, meaning: MeaningSearch | None = None) -> list[Place]:
        """The answer of the search core, by native ids."""
        found = ranked(self.store, self.sources, text, SearchFilters(workspace=scope, until=until), meaning, self.now)
        return [(self.names[session], seq) for session, seq, _ in found]

    @cached_property
    def names(self) -> dict[int, str]:
        """Session → native id."""
        return {session.id: session.native_id for session, _ in self.sessions}

    @cached_property
    def sessions(self) -> list[tuple[Session, str]]:
        """Every session with its workspace, in the order they were taken in."""
        wanted = SessionFilter(kinds=SESSION_KINDS, states=("current", "superseded"))
        found: list[tuple[Session, str]] = []
        after = ""
        while True:
            rows, after = self.store.sessions(wanted, 200, after)
            found += [(session, text.workspace) for session, text in rows]
            if not after:
                return sorted(found, key=lambda one: one[0].id)

    def path(self, session: Session) -> Path:
        """The file a session was read from."""
        return Path(self.store.file_by_id(self.store.version(session.version).source)[0].path)

    def documents(self) -> Iterator[Document]:
        """Every message, each once."""
        for session, workspace in self.sessions:
            for row, message in read_messages(self.store, self.sources, session):
                if not row.inherited:
                    yield Document(workspace, (session.native_id, row.seq), message)
