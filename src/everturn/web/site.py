"""What one run of the server is: its archive, its settings as plain values, its token, its jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from everturn.clock import Clock, new_id, now
from everturn.web.archive import WebArchive
from everturn.web.jobs import WebJobs

if TYPE_CHECKING:
    from everturn.llm.asking import Asker
    from everturn.model.archive import Session
    from everturn.recall.reading import Sources
    from everturn.sources import SearchPlaces
    from everturn.store import Store

T = TypeVar("T")

_MOST_CACHED = 300  # answers

#: Opens a model of the config for a session, with a limit on how often it is asked.
OpenModel = Callable[["Store", "Session", str], "Asker"]


def _say_nothing(text: str) -> None:
    """Nobody is there to be told."""


@dataclass
class Site:
    """One run. Whoever starts it passes in what only a surface may know."""

    archive: WebArchive
    places: SearchPlaces
    machine: str = ""
    folder: Path | None = None  # where the archive lies, if it is a file
    models: tuple[str, ...] = ()  # names in the config
    open_model: OpenModel | None = None
    prices: Path | None = None  # a file with prices of one's own
    clock: Clock = now
    warn: Callable[[str], None] = _say_nothing  # where a defect is told
    token: str = field(default_factory=new_id)
    key: str = ""  # who does not know it may not even read; empty: everybody on this machine may
    jobs: WebJobs = field(default_factory=WebJobs)
    _held: dict[str, tuple[int, Any]] = field(default_factory=dict)  # answers that are the same for a while

    @property
    def sources(self) -> Sources:
        """Every source."""
        from everturn.sources import all_sources

        return all_sources()

    @property
    def titles(self) -> Mapping[str, str]:
        """What the agents are called by their names."""
        return {name: source.title for name, source in self.sources.items()}

    def for_a_while(self, name: str, look: Callable[[], T], most: int = 60_000) -> T:
        """What was found out less than a minute ago, else what is found out now."""
        at, value = self._held.get(name, (0, None))
        if value is None or not 0 <= self.clock() - at < most:
            value = self._cache_value(name, self.clock(), look())
        found: T = value
        return found

    def until_it_grows(self, name: str, session: Session, look: Callable[[], T]) -> T:
        """What was found out about a session as it is, else what is found out now."""
        key = f"{name} {session.id}"
        size, value = self._held.get(key, (-1, None))
        if size != session.n_messages:
            value = self._cache_value(key, session.n_messages, look())
        found: T = value
        return found

    def forget(self, *names: str) -> None:
        """Find these out again when they are asked for; everything when none is named."""
        for name in names or tuple(self._held):
            self._held.pop(name, None)

    def _cache_value(self, key: str, stamp: int, value: Any) -> Any:
        self._held.pop(key, None)
        self._held[key] = stamp, value
        for old in list(self._held)[:-_MOST_CACHED]:
            self._held.pop(old, None)
        return value

    def close(self) -> None:
        """End what runs and let go of the archive."""
        self.jobs.close()
        self.archive.close()
