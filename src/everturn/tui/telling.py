"""A session as a feed: its messages a hundred at a time, told as turns, words and calls.

A page is a range of messages, so that a session of ten thousand turns, and a turn of ten thousand calls, opens at any place
at the cost of one page. What calls gave back is read when they are opened (`items.Items`).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import groupby

from msgspec.structs import replace

from everturn.model.archive import Call, MessageRow, Step, Turn
from everturn.recall.lineage import lineage
from everturn.recall.reading import TurnView, has_words
from everturn.recall.sessions import short_ids
from everturn.recall.transcript import Passage, passages
from everturn.store import Store
from everturn.tui.archive import ScreenArchive
from everturn.tui.feed import FeedItem, FeedPage
from everturn.tui.items import ItemBuilder, StartSpot, head_of, turn_heading
from everturn.tui.told import FoldedItem, WordsItem

MESSAGES = 100  # of a page
_CACHED_TURNS = 8

Structure = tuple[Turn, list[Step], list[Call]]


class TranscriptFeed:
    """Pages of one session."""

    def __init__(self, archive: ScreenArchive, store: Store, session: int, spot: StartSpot | None = None) -> None:
        self._archive, self._spot = archive, spot
        self.session, self.text = store.session(session)
        self.short = archive.line(short_ids([self.session], store)[self.session.id], 40)
        self.relatives = lineage(store, self.session)
        self.items = ItemBuilder(archive, self.session, self.relatives, spot.marks if spot else ())
        self._structures: dict[int, Structure] = {}

    @property
    def last_page(self) -> int:
        """The number of the last page."""
        return max(0, self.session.n_messages - 1) // MESSAGES

    def page(self, store: Store, number: int) -> FeedPage:
        """Read a page."""
        first = number * MESSAGES
        rows = list(store.messages(self.session.id, first, first + MESSAGES - 1))
        found: list[FeedItem] = (
            list(head_of(self._archive, self.session, self.text, self.relatives)) if number == 0 else []
        )
        for turn, piece in groupby(rows, key=lambda row: row.turn):
            found += self._turn_items(store, self._turn_structure(store, turn), list(piece))
        return FeedPage(number, found, number >= self.last_page)

    def aim(self, store: Store) -> tuple[int, Hashable]:
        """Where the spot is: the page and the item, which will be open."""
        spot = self._spot
        row = next(store.messages(self.session.id, spot.seq, spot.seq), None) if spot else None
        if spot is None or row is None:
            return 0, None
        structure = self._turn_structure(store, row.turn)
        key = self.items.aim(store, spot, structure[2], self._numbered_passages(store, structure, [row]))
        return key[1] // MESSAGES, key

    def page_of_turn(self, store: Store, turn: int) -> tuple[int, Hashable]:
        """Where a turn begins."""
        first = self._turn_structure(store, max(0, min(turn, self.session.n_turns - 1)))[0]
        return first.first_seq // MESSAGES, ("turn", first.idx)

    def toggled(self, store: Store, item: FoldedItem) -> FoldedItem | WordsItem:
        """The item opened, or closed."""
        self.items.opened ^= {item.key}
        return self._read_item(store, item.key) or item

    def whole(self, store: Store, item: FoldedItem | WordsItem) -> FoldedItem | WordsItem:
        """The item with all its words."""
        before = set(self.items.opened)
        self.items.opened.add(item.key)
        try:
            return self._read_item(store, item.key, 0) or item
        finally:
            self.items.opened = before

    def _read_item(self, store: Store, key: Hashable, most: int | None = None) -> FoldedItem | WordsItem | None:
        """An item read once more."""
        assert isinstance(key, tuple)
        row = next(store.messages(self.session.id, key[1], key[1]), None)
        told = self._numbered_passages(store, self._turn_structure(store, row.turn), [row]) if row else ()
        for number, passage in told:
            for item in self.items.of(store, passage, number, most):
                if item.key == key and isinstance(item, FoldedItem | WordsItem):
                    return item
        return None

    def _turn_structure(self, store: Store, turn: int) -> Structure:
        if turn not in self._structures:
            if len(self._structures) >= _CACHED_TURNS:
                self._structures.clear()
            found = store.turns(self.session.id, turn, turn)
            one = found[0] if found else Turn(self.session.id, turn)
            self._structures[turn] = one, store.steps(self.session.id, turn), store.calls(self.session.id, turn)
        return self._structures[turn]

    def _turn_items(self, store: Store, structure: Structure, rows: list[MessageRow]) -> Iterator[FeedItem]:
        turn = structure[0]
        if rows[0].seq <= turn.first_seq:
            yield turn_heading(turn)
        for number, passage in self._numbered_passages(store, structure, rows):
            yield from self.items.of(store, passage, number)

    def _numbered_passages(
        self, store: Store, structure: Structure, rows: list[MessageRow]
    ) -> Iterator[tuple[int, Passage]]:
        """The passages of some messages of a turn, each with its number within its message."""
        turn, steps, calls = structure
        if not has_words(self.session):
            seqs = {row.seq for row in rows}
            yield from ((n, Passage("call", call=call)) for n, call in enumerate(calls) if call.seq in seqs)
            return
        piece = replace(turn, first_seq=rows[0].seq, last_seq=rows[-1].seq)
        if rows[0].seq > turn.first_seq:  # the first turn also tells what lies before it in the file, but only once
            piece.idx = max(1, turn.idx)
        view = TurnView(piece, steps, calls, rows)
        number, seq = 0, -1
        for passage in passages(store, self._archive.sources, self.session, view):
            if passage.row is not None and passage.row.seq != seq:
                number, seq = 0, passage.row.seq
            yield number, passage
            number += 1
