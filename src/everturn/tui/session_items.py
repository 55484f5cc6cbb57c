"""A session as items of the screen: turn headings, text, folded thinking and calls, links to other sessions.

A call is one line with its outcome; opened, it shows the diff of an edit or its input, and its result. An item holds only
cleaned text, and only as much as is drawn: the beginning, or an excerpt around a match. The whole is read again on request.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import NamedTuple

from msgspec import Struct

from everturn.model.archive import Call, Session, SessionText, Turn
from everturn.sessions.lineage import Lineage, Relative, relation_words
from everturn.sessions.messages import Passage, Records, has_words, input_text, is_quiet
from everturn.store.contract import Store
from everturn.text.diffs import diff_of, style_of
from everturn.text.printable import plural
from everturn.text.times import duration, minute, turn_ms
from everturn.tui.archive import ScreenArchive
from everturn.tui.lines import Line, Span, block, cut, mark_spans
from everturn.tui.paged_view import FeedItem

_LINES_BEFORE = 3  # lines before a match that are shown with it


class ExcerptItem(NamedTuple):
    """Some lines of a text, and how many come before and after."""

    text: str
    before: int = 0
    beyond: int = 0

    def lines(self, width: int, margin: str, style: str = "", beside: str = "") -> list[Line]:
        drawn = block(self.text, width, margin, style, beside)
        if self.before:
            drawn.insert(0, ((f"{margin}… {plural(self.before, 'line')} before", "dim"),))
        if self.beyond:
            more = f"{margin}… {self.beyond:,} more line{'' if self.beyond == 1 else 's'} (v shows all)"
            drawn.append(cut(((more, "dim"),), width))
        return drawn


def excerpt(text: str, most: int, marks: tuple[str, ...] = ()) -> ExcerptItem:
    """Return the first `most` lines of a text (0: all), or those around its first mark."""
    text = text.strip("\n")
    if not most:
        return ExcerptItem(text)
    at, lower = 0, text.lower() if marks else ""
    places = [place for mark in marks if (place := lower.find(mark.lower())) >= 0]
    if places:
        at = _line_before(text, min(places), _LINES_BEFORE)
    end = at
    for _ in range(most):
        end = text.find("\n", end) + 1
        if end == 0:
            break
    stop = end - 1 if end else len(text)
    return ExcerptItem(text[at:stop], text.count("\n", 0, at), text.count("\n", stop))


def _line_before(text: str, place: int, lines: int) -> int:
    """Return the start of the line that is `lines` before the one at `place`."""
    for _ in range(lines + 1):
        place = text.rfind("\n", 0, place)
        if place < 0:
            return 0
    return place + 1


class HeadingItem(Struct, frozen=True):
    """A fact about the session, the heading of a turn, or a mark such as a compaction."""

    key: Hashable
    text: Line
    turn: int = -1
    blank: bool = False  # a line of room before it
    is_head: bool = False  # a fact about the session

    def lines(self, width: int) -> list[Line]:
        return [*([()] if self.blank else []), cut(self.text, width)]


class WordsItem(Struct, frozen=True):
    """A message of a person, the model or the client."""

    key: Hashable
    body: ExcerptItem
    margin: str = "  "
    style: str = ""
    beside: str = ""
    label: str = ""
    marks: tuple[str, ...] = ()

    def lines(self, width: int) -> list[Line]:
        first, rest = self.margin, " " * len(self.margin)
        drawn = self.body.lines(width, rest, self.style, self.beside)
        if first.strip() and drawn:
            drawn[0] = ((first, self.beside or self.style), *drawn[0][1:])
        if self.label:
            drawn.insert(0, ((f"[{self.label}]", "dim"),))
        return [mark_spans(line, self.marks) for line in drawn]


class FoldedPart(Struct, frozen=True):
    """A part of an opened item: a diff, or text with a margin."""

    body: ExcerptItem
    margin: str
    beside: str = "dim"
    is_diff: bool = False

    def lines(self, width: int) -> list[Line]:
        if not self.is_diff:
            return self.body.lines(width, self.margin, "", self.beside)
        drawn = [
            line
            for text in self.body.text.split("\n")
            for line in block(text, width, self.margin, style_of(text), self.beside)
        ]
        return [*drawn, *ExcerptItem("", 0, self.body.beyond).lines(width, self.margin)[1:]]


class FoldedItem(Struct, frozen=True):
    """One line, and its parts once it is opened. `parts` is None while it is closed."""

    key: Hashable
    text: Line
    parts: tuple[FoldedPart, ...] | None = None
    margin: str = ""
    marks: tuple[str, ...] = ()

    def lines(self, width: int) -> list[Line]:
        sign = "▸ " if self.parts is None else "▾ "
        drawn = [cut(((self.margin + sign, "dim"), *self.text), width)]
        for part in self.parts or ():
            drawn += [mark_spans(line, self.marks) for line in part.lines(width)]
        if self.parts == ():
            drawn.append(((f"{self.margin}    (nothing)", "dim"),))
        return drawn


class LinkItem(Struct, frozen=True):
    """A link to another session; `session` is None when it is not in the archive."""

    key: Hashable
    text: str
    session: int | None
    margin: str = ""

    def lines(self, width: int) -> list[Line]:
        body = (self.text, "link") if self.session is not None else (f"{self.text} (not in the archive)", "dim")
        return [cut(((f"{self.margin}↳ ", "dim"), body), width)]


PROSE = 80  # lines of words
OPENED = 60  # lines of what was folded away
_WIDEST = 300  # cells of what a line says about a call
_LABELS = {"summary": "summary by the client", "unknown": "unknown record"}
_MARKS = {"compaction": "── the context was compacted here ──", "interrupt": "✋ interrupted by the user"}
_SIGNS = {"ok": ("✓", "ok"), "error": ("✗", "error"), "open": ("…", "warn"), "orphan": ("?", "warn")}

Key = tuple[str, int, int]


class StartSpot(NamedTuple):
    """A message to start at, the field of the match, and the matched words."""

    seq: int
    field: str = ""
    marks: tuple[str, ...] = ()


class ItemBuilder:
    """Builds items from passages, and knows which of them are open."""

    def __init__(
        self, archive: ScreenArchive, session: Session, relatives: Lineage, marks: tuple[str, ...] = ()
    ) -> None:
        self._archive, self._session, self._marks = archive, session, marks
        self.context = False  # whether context that the client added is shown
        self.opened: set[Hashable] = set()
        self.target: Hashable = None  # the item with the match
        self._children = relatives.children_by_call()

    def of(self, store: Store, passage: Passage, number: int, most: int | None = None) -> Iterator[FeedItem]:
        """Yield the items of a passage, the `number`-th of its message, with at most `most` lines each (0: all)."""
        key: Key = ("said", passage.row.seq if passage.row else -1, number)
        if passage.kind in ("call", "result"):
            yield from self._call(store, passage, OPENED if most is None else most)
        elif passage.kind in _MARKS:
            yield HeadingItem(key, ((_MARKS[passage.kind], "warn"),))
        elif passage.kind == "problem":
            text = self._archive.line(passage.text, _WIDEST)
            yield HeadingItem(("problem", passage.text), ((f"⚠ could not be read: {text}", "error"),))
        elif passage.text and (passage.kind == "thinking" or is_quiet(passage)):
            if passage.kind == "thinking" or self.context or key == self.target:
                yield self._folded_item(passage, key, OPENED if most is None else most)
        elif passage.text:
            yield self._words_item(passage, key, PROSE if most is None else most)

    def aim(self, store: Store, spot: StartSpot, calls: list[Call], numbered: Iterable[tuple[int, Passage]]) -> Key:
        """Return the key of the item with the match, and open it."""
        here = [call for call in calls if spot.seq in (call.seq, call.result_seq)]
        if spot.field == "tool_output":
            here = [call for call in here if call.result_seq == spot.seq] or here
        if here and spot.field in ("tool_input", "tool_output"):
            self.target = self._find_call_key(store, here, spot)
        else:
            self.target = self._find_words_key(numbered, spot)
        self.opened.add(self.target)
        return self.target

    # words ----------------------------------------------------------------------------------------------------------
    def _words_item(self, passage: Passage, key: Key, most: int) -> WordsItem:
        marks = self._marks_of(key)
        body = excerpt(self._archive.text(passage.text), most, marks)
        if passage.kind == "prompt":
            return WordsItem(key, body, "❯ ", "bold", "head", marks=marks)
        if passage.kind == "answer":
            return WordsItem(key, body, marks=marks)
        style = "error" if passage.kind == "notice" else "dim"
        return WordsItem(key, body, style=style, label=_LABELS.get(passage.kind, passage.kind), marks=marks)

    def _folded_item(self, passage: Passage, key: Key, most: int) -> FoldedItem:
        text = self._archive.text(passage.text).strip("\n")
        label = f"{_LABELS.get(passage.kind, passage.kind)} · {plural(text.count(chr(10)) + 1, 'line')}"
        marks = self._marks_of(key)
        parts = (FoldedPart(excerpt(text, most, marks), "  ┆ "),) if key in self.opened else None
        return FoldedItem(key, ((label, "dim"),), parts, marks=marks)

    def _find_words_key(self, numbered: Iterable[tuple[int, Passage]], spot: StartSpot) -> Key:
        found: list[Key] = []
        for number, passage in numbered:
            if passage.row is not None and passage.text and passage.kind not in ("call", "result"):
                key: Key = ("said", spot.seq, number)
                if _has_mark(self._archive.text(passage.text), spot.marks):
                    return key
                found.append(key)
        return found[0] if found else ("said", spot.seq, 0)

    # calls ----------------------------------------------------------------------------------------------------------
    def _call(self, store: Store, passage: Passage, most: int) -> Iterator[FeedItem]:
        call = passage.call
        seq, idx = (call.seq, call.idx) if call else (passage.row.seq if passage.row else -1, -1)
        is_parallel = passage.batch > 1
        if is_parallel and call is not None and call.batch == 0:
            yield HeadingItem(("batch", seq, idx), ((f"⇉ {passage.batch} calls in parallel", "dim"),))
        key: Key = ("call", seq, idx)
        marks, margin = self._marks_of(key), "  " if is_parallel else ""
        parts = tuple(self._call_parts(store, passage, most, marks)) if key in self.opened else None
        yield FoldedItem(key, (*self._call_spans(passage),), parts, margin, marks)
        for one in self._children.get((seq, idx), ()):
            yield relative_link(self._archive, one, relation_words(one), margin + "  ")

    def _call_spans(self, passage: Passage) -> Iterator[Span]:
        """Yield the one line of a call: outcome, name, duration, subject."""
        call, start, line = passage.call, passage.start, self._archive.line
        sign, style = _SIGNS[call.status if call else "open"]
        name = start.name if start else (call.name if call else "") or "result without a call"
        yield f"{sign} ", style
        yield line(name, 60), "bold"
        if call is not None and call.status in ("error", "orphan") and (went := call.failure):
            yield f"  {went}", "error"
        if call is not None and call.duration_ms is not None:
            yield f"  {duration(call.duration_ms)}", "dim"
        if start is not None and (about := start.command or start.path or start.prompt or input_text(start)):
            yield f"  {line(about, _WIDEST)}", ""

    def _call_parts(self, store: Store, passage: Passage, most: int, marks: tuple[str, ...]) -> Iterator[FoldedPart]:
        """Yield the input or diff of a call, and its result."""
        start, call, text = passage.start, passage.call, self._archive.text
        if start is not None:
            diff = diff_of(start)
            given = "\n".join(diff) if diff else input_text(start)
            if given:
                yield FoldedPart(excerpt(text(given), most, marks), "    " if diff else "  > ", is_diff=bool(diff))
        output = passage.text if passage.kind == "result" else self._output(store, call)
        if output:
            failed = call is not None and call.status == "error"
            yield FoldedPart(excerpt(text(output), most, marks), "  │ ", "error" if failed else "dim")

    def _output(self, store: Store, call: Call | None) -> str:
        if call is None or not has_words(self._session):
            return ""
        block = Records(store, self._archive.sources, self._session, until=0).result(call)
        return block.text if block is not None else ""

    def _find_call_key(self, store: Store, here: list[Call], spot: StartSpot) -> Key:
        if len(here) > 1 and spot.field == "tool_output":
            here = [one for one in here if _has_mark(self._archive.text(self._output(store, one)), spot.marks)] or here
        return "call", here[0].seq, here[0].idx

    def _marks_of(self, key: Key) -> tuple[str, ...]:
        return self._marks if key == self.target else ()


def head_of(archive: ScreenArchive, session: Session, text: SessionText, relatives: Lineage) -> Iterator[FeedItem]:
    """Yield the items above the first turn: facts about the session, and links to its relatives."""
    facts = (
        f"{session.native_id}",
        " · ".join(filter(None, (session.agent, session.client, session.model))),
        " ".join(filter(None, (text.workspace, text.branch and f"({text.branch})"))),
        " to ".join(minute(at) for at in (session.started, session.ended) if at is not None),
        f"{plural(session.n_turns, 'turn')}, {plural(session.n_calls, 'call')}, {plural(session.n_errors, 'error')}",
    )
    for number, fact in enumerate(filter(None, facts)):
        offer: tuple[Span, ...] = (("  ↵ resume", "ok"),) if number == 0 else ()
        yield HeadingItem(("fact", number), ((archive.line(fact, _WIDEST), "dim"), *offer), is_head=True)
    if session.state != "current":
        yield HeadingItem(("fact", -1), (("an older version: its file has been rewritten since", "warn"),))
    if not has_words(session):
        yield HeadingItem(("fact", -2), (("only the structure of this session was stored, without text", "warn"),))
    for one in (*relatives.ancestors, *relatives.forks, *relatives.others):
        elder = one in relatives.ancestors
        yield relative_link(archive, one, relation_words(one, elder))
    for one in relatives.children:
        if one.call is None:
            yield relative_link(archive, one, relation_words(one))


def relative_link(archive: ScreenArchive, one: Relative, label: str, margin: str = "") -> LinkItem:
    name = one.native_id.rpartition("/")[2] or one.native_id
    number = one.session.id if one.session else None
    return LinkItem(("link", one.native_id, one.relation), f"{label} {archive.line(name, 60)}", number, margin)


def turn_heading(turn: Turn) -> HeadingItem:
    parts = [f"Turn {turn.idx + 1}", minute(turn.started), duration(turn_ms(turn) or None)]
    parts += [plural(turn.n_calls, "call")] * bool(turn.n_calls) + ["inherited"] * bool(turn.inherited)
    parts += ["taken back"] * bool(turn.taken_back)
    spans: list[Span] = [(f"── {' · '.join(filter(None, parts))}", "head")]
    if turn.n_errors:
        spans.append((f" · {plural(turn.n_errors, 'error')}", "error"))
    return HeadingItem(("turn", turn.idx), (*spans, (" ──", "head")), turn.idx, blank=True)


def _has_mark(text: str, marks: tuple[str, ...]) -> bool:
    lower = text.lower()
    return any(mark.lower() in lower for mark in marks)
