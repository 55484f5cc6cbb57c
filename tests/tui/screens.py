"""What the tests of the screens stand on: an archive, the browser without a terminal, and what it shows as text."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from everturn.store.contract import Store, open_store
from everturn.store.pool import open_existing
from everturn.tui.app import Browser
from everturn.tui.archive import ScreenArchive
from everturn.tui.screen_frame import BrowserScreen
from tests.capture.history import SID
from tests.recall.archives import Archive as Taken

NOW = 1_772_400_000_000
_NAMES = {" ": "space", ":": "colon", "-": "minus", '"': "quotation_mark", "/": "slash", "@": "at", ".": "full_stop"}


class Counting:
    """A real store that counts the rows it gives."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rows: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def sessions(self, *given: Any) -> Any:
        found, cursor = self._store.sessions(*given)
        self.rows["sessions"] += len(found)
        return found, cursor

    def messages(self, *given: Any) -> Iterator[Any]:
        for row in self._store.messages(*given):
            self.rows["messages"] += 1
            yield row

    def turns(self, *given: Any) -> Any:
        found = self._store.turns(*given)
        self.rows["turns"] += len(found)
        return found

    def calls(self, *given: Any) -> Any:
        found = self._store.calls(*given)
        self.rows["calls"] += len(found)
        return found


class Screens:
    """The browser in front of somebody who reads it."""

    def __init__(self, app: Browser, pilot: Pilot[int]) -> None:
        self.app, self.pilot = app, pilot

    @property
    def frame(self) -> BrowserScreen:
        assert isinstance(self.app.screen, BrowserScreen)
        return self.app.screen

    async def settle(self) -> None:
        """Wait until all that was begun is done."""
        for _ in range(3):
            await self.pilot.pause()
            await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def press(self, *keys: str) -> list[str]:
        """Press keys, one after the other, and read the screen."""
        for key in keys:
            await self.pilot.press(key)
            await self.settle()
        return self.lines()

    async def type(self, text: str) -> list[str]:
        """Type words and wait as long as the screen does."""
        await self.pilot.press(*(_NAMES.get(char, char) for char in text))
        await self.pilot.pause(0.4)
        await self.settle()
        return self.lines()

    def lines(self) -> list[str]:
        """The rows of the screen, without what is typed into."""
        frame = self.frame
        height = frame.pages.size.height
        rows = [
            frame.top_bar.render_line(0),
            *map(frame.pages.render_line, range(height)),
            frame.bottom_bar.render_line(0),
        ]
        return [row.text.rstrip() for row in rows]

    def text(self) -> str:
        """The same as one text."""
        return "\n".join(self.lines())


class Desk:
    """An archive to browse."""

    def __init__(self, folder: Path) -> None:
        self.db = folder / "archive.db"
        self.taken = Taken(open_store(str(self.db)), folder / "agent")
        self.history = self.taken.history
        self.opened: list[Counting] = []
        self.written: dict[str, bytes] = {}

    def take_in(self, *pieces: bytes, sid: str = SID) -> int:
        """Put a transcript into the archive; the number of its session."""
        return self.taken.take_in(*pieces, sid=sid).id

    def browse(
        self,
        look: Callable[[Screens], Awaitable[None]],
        size: tuple[int, int] = (80, 24),
        reveal: bool = False,
        **more: Any,
    ) -> Browser:
        """Run the browser and let somebody look at it."""
        with self._archive(reveal) as archive:
            app = Browser(archive, self._write, **more)

            async def run() -> None:
                async with app.run_test(size=size) as pilot:
                    screens = Screens(app, pilot)
                    await screens.settle()
                    await look(screens)

            asyncio.run(run())
        return app

    @property
    def rows(self) -> Counter[str]:
        """The rows that were read so far."""
        return sum((one.rows for one in self.opened), Counter[str]())

    @contextmanager
    def _archive(self, reveal: bool) -> Iterator[ScreenArchive]:
        archive = ScreenArchive(str(self.db), reveal, lambda: NOW, self._open)
        archive.open()
        try:
            yield archive
        finally:
            archive.close()

    def _open(self, url: str) -> Store:
        counting = Counting(open_existing(url))
        self.opened.append(counting)
        return counting

    def _write(self, target: str, pieces: Iterable[bytes]) -> int:
        self.written[target] = b"".join(pieces)
        return len(self.written[target])
