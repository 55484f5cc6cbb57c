"""What a search finds as a feed: the real search core, page by page, with the matches marked."""

from __future__ import annotations

from msgspec import Struct

from everturn.recall.search import SearchHit, search
from everturn.store import Store
from everturn.tui.archive import ScreenArchive, steady_text
from everturn.tui.feed import FeedPage
from everturn.tui.items import StartSpot
from everturn.tui.lines import Line, Span, cut
from everturn.tui.listing import age_text, short_folder

HITS = 30


class HitItem(Struct, frozen=True):
    """One match: where it stands, and a line of it."""

    key: tuple[int, int]
    session: int
    spot: StartSpot | None  # None when the title or summary of the session matches
    where: Line
    snippet: Line

    def lines(self, width: int) -> list[Line]:
        """Two lines."""
        return [cut(self.where, width), cut((("   ", ""), *self.snippet), width)]


class HitFeed:
    """Pages of what a request finds, best first."""

    def __init__(self, archive: ScreenArchive, asked: str) -> None:
        self._archive, self.asked = archive, asked
        self._now = archive.clock()
        self._cursors = [""]
        self.notes: tuple[str, ...] = ()

    def page(self, store: Store, number: int) -> FeedPage:
        """Search, or go on. Raises Usage when the request means nothing."""
        archive = self._archive
        found = search(
            store,
            archive.sources,
            self.asked,
            limit=HITS,
            cursor=self._cursors[number],
            clean=archive.clean,
            now=self._now,
        )
        if found.next and number + 1 == len(self._cursors):
            self._cursors.append(found.next)
        if number == 0:
            self.notes = tuple(archive.line(note, 200) for note in found.notes)
        return FeedPage(number, [self._make_hit(one) for one in found.items], not found.next)

    def _make_hit(self, one: SearchHit) -> HitItem:
        line, session, row = self._archive.line, one.session, one.row
        about = line(one.text.title or one.text.first_prompt, 120)
        where: list[Span] = [(f"{age_text(session.ended, self._now):>4} ", "dim"), (line(session.agent, 12), "ok")]
        where.append((f" {short_folder(line(one.text.workspace, 400))}", "head"))
        where.append((f" turn {row.turn + 1}" if row is not None else " title", "bold"))
        where.append((f" {one.field.replace('_', ' ')}", "dim"))
        where.append((f"  {about}", ""))
        spot = None
        if row is not None:
            marks = dict.fromkeys(one.snippet[start:end] for start, end in one.spans)
            spot = StartSpot(row.seq, one.field, tuple(marks))
        return HitItem((session.id, row.seq if row else -1), session.id, spot, tuple(where), tuple(_snippet_spans(one)))


def _snippet_spans(one: SearchHit) -> list[Span]:
    spans, at = list[Span](), 0
    for start, end in one.spans:
        spans += [(one.snippet[at:start], ""), (one.snippet[start:end], "match")]
        at = end
    spans.append((one.snippet[at:], ""))
    return [(steady_text(text), style) for text, style in spans if text]
