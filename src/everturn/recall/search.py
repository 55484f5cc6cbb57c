"""Where words stand in the archive.

`search` asks for messages that hold every word. When there is none, for such among what clients put in by themselves,
which is left out otherwise; then for messages that hold any of the words; and the answer says which it was. Each match
carries what is needed to go there: session, turn, message, and a snippet with the match marked. Snippets are made from
text whose secrets were taken out first: a secret cut in half would no longer be known as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.excerpt import excerpt
from everturn.derive.query import Parsed, parse
from everturn.errors import Usage
from everturn.model.archive import MessageRow, Session, SessionText
from everturn.model.conversation import Message
from everturn.model.words import SESSION_KINDS
from everturn.recall import Page
from everturn.recall.reading import Records, Sources
from everturn.store import Hit, Query, SessionFilter, Store

Clean = Callable[[str], str]

#: What an answer says about itself, by the attempt that found it.
NOTES = {
    "all": "",
    "injected": "these words stand only in what the client put in by itself",
    "any": "no message holds all the words; these hold some of them",
}
_AT_ONCE = 200
_MOST_HIDDEN = 2000  # matches passed over before a page is given as it is
#: Words of what was said stand above words of what was given in, when both match.
_BEST_FIRST = ("prompt", "answer", "summary", "thinking", "tool_input", "tool_output", "meta")


class Filters(Struct, frozen=True):
    """Where to look. Empty fields do not filter."""

    agent: str = ""
    workspace: str = ""  # part of the path, case-insensitive
    session: Session | None = None
    since: int | None = None  # of the message
    until: int | None = None
    fields: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()


EVERYWHERE = Filters()


class Found(Struct, frozen=True):
    """A message that matches. `row` is None when the session's own title or summary does."""

    session: Session
    text: SessionText
    row: MessageRow | None
    field: str  # where it matches: of `words.FIELDS`, or `title`
    snippet: str  # on one line, safe to print
    spans: list[tuple[int, int]]  # of the matches in it
    score: float


def search(
    store: Store,
    sources: Sources,
    text: str,
    filters: Filters = EVERYWHERE,
    limit: int = 20,
    cursor: str = "",
    clean: Clean | None = None,
) -> Page[Found]:
    """A page of matches, best first. Raises Usage when there is nothing to look for, or the cursor is another's."""
    asked = parse(text)
    if not asked.groups:
        raise Usage(f"there is no word to look for in {text!r}; give at least one word to find")
    query = _query(asked, filters)
    mark = _mark(query)
    start, offset = _position(cursor, mark)
    for mode in [start] if cursor else _attempts(query):
        hits, following = _page(store, _attempt(query, mode), offset, limit, hide=_hides(query, mode))
        if hits:
            break
    shown = _Shown(store, sources, asked, filters.fields, clean or (lambda words: words))
    next_cursor = f"{mode}.{following}.{mark}" if following else ""
    return Page([shown.found(hit, row) for hit, row in hits], next_cursor, NOTES[mode] if hits else "")


_Placed = tuple[Hit, MessageRow | None]


def _attempts(query: Query) -> list[str]:
    """What is tried until something is found."""
    several = len(query.groups) > 1
    return ["all"] + ["injected"] * (not query.origins) + ["any"] * several


def _hides(query: Query, mode: str) -> bool:
    """Whether what clients put in is left out: unless one asks for it, by speaker or by field."""
    return mode != "injected" and not query.origins and not query.fields


def _attempt(query: Query, mode: str) -> Query:
    if mode == "injected":
        return replace(query, origins=("injected",))
    if mode == "any":
        return replace(query, groups=(tuple(phrase for group in query.groups for phrase in group),))
    return query


def _page(store: Store, query: Query, offset: int, limit: int, hide: bool) -> tuple[list[_Placed], int]:
    """Matches from an offset on, without the hidden ones, and the offset of the next page (0 at the end)."""
    found: list[_Placed] = []
    size = limit + 1
    for at in _offsets(offset, size):
        hits = store.search(replace(query, offset=at, limit=size if at == offset else _AT_ONCE))
        for number, hit in enumerate(hits):
            row = next(store.messages(hit.session, hit.seq, hit.seq), None) if hit.seq >= 0 else None
            if hide and row is not None and row.origin == "injected":
                continue
            if len(found) == limit:
                return found, at + number
            found.append((hit, row))
        if len(hits) < (size if at == offset else _AT_ONCE):
            return found, 0
    return found, offset + size + _MOST_HIDDEN


def _offsets(offset: int, size: int) -> list[int]:
    return [offset, *range(offset + size, offset + size + _MOST_HIDDEN, _AT_ONCE)]


def _query(asked: Parsed, filters: Filters) -> Query:
    # Superseded editions are looked at too: what was cut out of a file stands nowhere else.
    sessions = SessionFilter(
        agent=filters.agent, workspace=filters.workspace, kinds=SESSION_KINDS, states=("current", "superseded")
    )
    return Query(
        groups=asked.groups,
        without=asked.without,
        fields=filters.fields,
        session=filters.session.id if filters.session else None,
        sessions=sessions if filters.agent or filters.workspace else None,
        origins=filters.origins,
        since=filters.since,
        until=filters.until,
    )


def _mark(query: Query) -> str:
    return blake2b(repr(query).encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()


def _position(cursor: str, mark: str) -> tuple[str, int]:
    if not cursor:
        return "all", 0
    mode, _, rest = cursor.partition(".")
    offset, _, of_query = rest.partition(".")
    if mode not in NOTES or not re.fullmatch("[0-9]{1,9}", offset) or of_query != mark:
        raise Usage(f"the cursor {cursor!r} does not belong to this search; leave it out to start again")
    return mode, int(offset)


class _Shown:
    """Makes answers of hits; each session is looked up once."""

    def __init__(self, store: Store, sources: Sources, asked: Parsed, fields: tuple[str, ...], clean: Clean) -> None:
        self._store = store
        self._sources = sources
        self._words = list(asked.shown)
        self._fields = [name for name in _BEST_FIRST if not fields or name in fields]
        self._clean = clean
        self._sessions: dict[int, tuple[Session, SessionText]] = {}

    def found(self, hit: Hit, row: MessageRow | None) -> Found:
        if hit.session not in self._sessions:
            self._sessions[hit.session] = self._store.session(hit.session)
        session, text = self._sessions[hit.session]
        if row is None:
            texts = [(name, words) for name, words in (("title", text.title), ("summary", text.summary)) if words]
        else:
            # Records are not kept: one of them may be as long as a line can be.
            texts = self._texts_of_message(Records(self._store, self._sources, session, until=0).message(row))
        return Found(session, text, row, *self._best(texts), hit.score)

    def _texts_of_message(self, message: Message) -> list[tuple[str, str]]:
        by_field: dict[str, list[str]] = {}
        for block in message.blocks:
            if block.text and block.field in self._fields:
                by_field.setdefault(block.field, []).append(block.text)
        return [(name, "\n".join(by_field[name])) for name in self._fields if name in by_field]

    def _best(self, texts: list[tuple[str, str]]) -> tuple[str, str, list[tuple[int, int]]]:
        """Of the texts the one where most of the words stand together; of equal ones the first."""
        made = [(name, *excerpt(self._clean(words), self._words)) for name, words in texts]
        return max(made, key=lambda one: len(one[2]), default=("", "", []))
