"""Which statements of a document a budget has room for.

The sections give way evenly: each has a share of the room, and its statements stand in a queue, the weightiest first. A statement comes
up when its section has had its share up to its middle, so a long list does not crowd out the others, and what a section does not need falls to the
rest. What is only noise beside the rest waits until they have had their fill. The order does not depend on the budget, and a document holds
a beginning of it: more room never shows less.

Names have a room of their own, at most `_NAMES_MOST` tokens: more of them say nothing, even if there is nothing else to show. What they do not
need falls to the rest. A name that stands in another statement is not repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from everturn.restore.document import Document, DocumentSection, Statement
from everturn.text.lazy_pattern import lazy_pattern
from everturn.text.tokens import MARGIN, cut_to_tokens, estimate_tokens

#: What a statement of a section costs in tokens.
Price = Callable[[str, Statement], float]

UNVERIFIED = "unverified"
NAMES = "names"
_TASK = "primary_task"

#: Shares of the sections. One that is not named has `_OTHER`.
_SHARES = {
    "high_level_goal": 20.0, "session_name": 20.0, "artifacts": 40.0, "commits": 16.0, "primary_task": 8.0, "still_failing": 8.0,
    "next_steps": 8.0, "open_questions": 8.0, "constraints": 24.0, "key_decisions": 8.0, "plan_open": 3.0, "requests": 1.5,
    "loose_ends": 1.0,
}  # fmt: skip
_OTHER = 0.6
_FIRST = 8  # the first statement of a section comes up when this part of its price is due
#: Sections that wait until one with a share of 1 has had so many tokens.
_WAIT = {"errors_fixed": 150, "plan_done": 150, "summaries": 150, "files": 250, "mentioned": 400, "commands": 400}
_NAMES_SHARE, _NAMES_MOST = 0.34, 560.0
_CITATION, _BYTES = 8, 4  # tokens of a citation, and bytes of a token, where it need not be exact
_POSITION = lazy_pattern(r"(?::\d{1,6}(?:[-:]\d{1,6})?|\([^()]{0,80}\))$")
_SLASH = lazy_pattern(r"/+")
_LEAST_WORDS = 30  # tokens: a shorter beginning of a statement is not shown
_ROUNDING = 0.6 * MARGIN  # tokens that rounding may take from the estimate of a line


class Entry(Struct, frozen=True):
    """A statement, its section, and its number there."""

    key: str
    number: int
    statement: Statement


class Terms(Struct, frozen=True):
    """How statements are written and what they cost."""

    price: Price
    heading: Callable[[str], float]  # the price of the heading of a section that is shown only if it holds statements
    tidy: Callable[[Statement], Statement]  # statements are tidied when they come up: most of a long session never do
    head: str = ""  # what stands before the sections


def cost(text: str) -> float:
    """Return the tokens of a text, estimated on the safe side."""
    return estimate_tokens(text) * MARGIN + _ROUNDING if text else 0.0


def fit_document(document: Document, room: float, terms: Terms) -> Document:
    """Return the document with the statements that `room` has tokens for, headings included.

    The citation of a name is counted once for each message.
    """
    entries = list(all_entries(document))
    rest = order_entries([one for one in entries if one.key != NAMES])
    names = order_entries([one for one in entries if one.key == NAMES])
    reserved = max(0.0, min(_NAMES_SHARE * room, _NAMES_MOST)) if names else 0.0
    filler = _Filler(rest, room - reserved, terms)
    filler.fill()
    if names:
        chosen, spare = _take_names(names, reserved - terms.heading(NAMES), filler.shown, terms)
        filler.fill(spare if chosen else reserved)
    filler.fill(sum(terms.price(one.key, one.statement) for one in _find_repeated(filler.shown)))
    again = _find_repeated(filler.shown)
    told = [one for one in filler.shown if one not in again]
    if names:
        text = _written(told, terms).replace("\\", "/")
        told += [one for one in chosen if not stands_in(_bare_name(one), text)]
    return keep_entries(document, told)


def _find_repeated(shown: list[Entry]) -> list[Entry]:
    """Return the statements on the current task whose words another one on it says with more."""
    told = [one for one in shown if one.key == _TASK]
    return [one for one in told if any(_says_more(other.statement, one.statement) for other in told)]


def _says_more(other: Statement, one: Statement) -> bool:
    words = (one.text.partition(": ")[2] or one.text).removesuffix("…")
    is_longer = len(other.text) > len(one.text) and len(words) >= _LEAST_WORDS
    return is_longer and words in other.text and _messages(other) >= _messages(one)


def _messages(one: Statement) -> set[int]:
    return {proof.message for proof in one.evidence}


def all_entries(document: Document) -> Iterator[Entry]:
    """Yield every statement of a document."""
    for one in (*document.sections, *document.facts, DocumentSection(UNVERIFIED, document.unverified)):
        for number, statement in enumerate(one.statements):
            yield Entry(one.key, number, statement)


def order_entries(entries: list[Entry]) -> list[Entry]:
    """Return statements in the order in which they come up."""
    had: dict[str, float] = {}
    due: list[tuple[float, int, Entry]] = []
    for place, one in enumerate(sorted(entries, key=lambda one: -one.statement.weight)):
        size = _CITATION + len(one.statement.text.encode("utf-8", "replace")) / _BYTES
        middle = had[one.key] + size / 2 if one.key in had else size / _FIRST
        had[one.key] = had.get(one.key, 0.0) + size
        due.append((_WAIT.get(one.key, 0) + middle / _SHARES.get(one.key, _OTHER), place, one))
    return [one for _, _, one in sorted(due, key=lambda one: one[:2])]


class _Filler:
    """Takes the statements that fit, up to the first that does not; of that one, as much as fits."""

    def __init__(self, entries: list[Entry], room: float, terms: Terms) -> None:
        self._left, self._room, self._terms = iter(entries), room, terms
        self._waits: Entry | None = None  # the first that does not fit
        self._kept: list[Entry] = []
        self._headed: set[str] = set()
        self.shown: list[Entry] = []

    def fill(self, more: float = 0.0) -> None:
        """Take on, with so many tokens more."""
        self._room += more
        while (one := self._waits or self._next()) is not None:
            left = self._room - (0.0 if one.key in self._headed else self._terms.heading(one.key))
            price = self._terms.price(one.key, one.statement)
            if price > left:
                self._waits = one
                self.shown = self._kept + _beginning(one, left, self._terms.price)
                return
            self._waits, self._room = None, left - price
            self._headed.add(one.key)
            self._kept.append(one)
        self.shown = self._kept

    def _next(self) -> Entry | None:
        raw = next(self._left, None)
        return None if raw is None else Entry(raw.key, raw.number, self._terms.tidy(raw.statement))


def _beginning(one: Entry, room: float, price: Price) -> list[Entry]:
    """Return the beginning of a statement if there is room for enough of it."""
    rest = room - price(one.key, replace(one.statement, text=""))
    if rest < _LEAST_WORDS:
        return []
    text = cut_to_tokens(one.statement.text, int(rest))
    return [Entry(one.key, one.number, replace(one.statement, text=text))] if text else []


def _take_names(names: list[Entry], room: float, shown: list[Entry], terms: Terms) -> tuple[list[Entry], float]:
    """Return the names up to the first that does not fit, and the room that is left if all of them fit.

    One that stands in what is shown is left out.
    """
    text = _written(shown, terms).replace("\\", "/")
    listed: list[str] = []
    cited: set[int] = set()
    kept: list[Entry] = []
    for one in names:
        name = _bare_name(one)
        if stands_in(name, text) or any(name in other for other in listed):
            continue
        messages = _messages(one.statement)
        statement = terms.tidy(one.statement)
        if not statement.text:
            continue
        price = terms.price(NAMES, replace(statement, evidence=()) if messages <= cited else statement)
        if price > room:
            return kept, 0.0
        room -= price
        cited |= messages
        listed.append(name)
        kept.append(Entry(one.key, one.number, statement))
    return kept, max(0.0, room)


def _written(shown: list[Entry], terms: Terms) -> str:
    """Return the words of a document, by which names are looked up."""
    return "\n".join((terms.head, *(one.statement.text for one in shown))).lower()


def _bare_name(one: Entry) -> str:
    return one.statement.text.strip("`").lower()


def stands_in(name: str, text: str) -> bool:
    """Whether a text has a name, or a path that it ends like: another prefix, a line number or arguments do not make another name."""
    bare = _POSITION.sub("", name).replace("\\\\", "/").replace("\\", "/") or name
    if bare in text:
        return True
    ends = (bare[at.end() :] for at in _SLASH.finditer(bare))
    return any(f"`{end}`" in text or f"`{end}:" in text for end in ends if "/" in end)


def keep_entries(document: Document, entries: list[Entry]) -> Document:
    """Return the document with some of its statements."""
    kept = {(one.key, one.number): one.statement for one in entries}

    def thin(section: DocumentSection) -> DocumentSection:
        numbers = range(len(section.statements))
        left = tuple(kept[section.key, number] for number in numbers if (section.key, number) in kept)
        cut = section.cut + len(section.statements) - len(left)
        return DocumentSection(section.key, left, 0 if section.key == NAMES else cut)

    return replace(
        document,
        sections=tuple(map(thin, document.sections)),
        facts=tuple(map(thin, document.facts)),
        unverified=thin(DocumentSection(UNVERIFIED, document.unverified)).statements,
    )
