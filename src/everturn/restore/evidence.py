"""Evidence of statements: made for mechanical facts, and checked for any statement.

A fact of a session state is an excerpt and a message number. `Proofs` adds the byte range of the record and a quote that
occurs in it, whitespace aside: the longest beginning of the excerpt that does, else the message itself is the evidence.
An excerpt that was cut within a secret is cut before it, because redaction does not recognise half a secret. A
`DraftStatement` becomes a statement when its messages are read: only drafts that may fit into a document are proven.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from math import log2
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from everturn.derive.file_book import FileState
from everturn.derive.session_state import FileMention, SessionState
from everturn.model.archive import Call, MessageRow, Session, SessionText
from everturn.model.conversation import Block, Message
from everturn.restore.document import Evidence, Statement
from everturn.sessions.messages import Records, Sources
from everturn.store.contract import Store
from everturn.text.printable import count_cells, cut_words, one_line
from everturn.text.tokens import find_highest

_TEXT_SEPARATOR = " \0 "
_CACHED_TEXT, _CACHED_MESSAGES = 1_000_000, 1_000  # characters, and messages
_LONGEST = 400_000  # characters of a message that are searched
_SHORTEST = 12  # characters of a quote that still says something
_WIDTH = 80
_QUOTE_TABLE = str.maketrans('"‘’‚‛“”„‟«»`´\u2010\u2011', "'" * 13 + "--")
_CUT = re.compile(r"\s*(?:\[\s*(?:…|\.\.\.)\s*\]|…|\.\.\.)\s*")
_WHOLE_TEXT = 16_000  # characters: a shorter message is looked at as a whole
_SECRET_MARGIN = 4_000  # characters around a cut that are searched for a secret


class Proofs:
    """Finds evidence in one session."""

    def __init__(self, store: Store, sources: Sources, session: Session) -> None:
        self._store, self._session = store, session
        self._records = Records(store, sources, session, until=0)
        self._texts = _RecentTexts[tuple[MessageRow | None, str]]()

    def evidence(self, seq: int, quote: str = "", call: int | None = None) -> Evidence | None:
        """Return the evidence in message `seq`, with as much of the quote as occurs in it; None without a message."""
        row, text = self.read_message(seq)
        if row is None:
            return None
        session, found = self._session, _matching_beginning(quote, text)
        return Evidence(session.id, row.turn, seq, call, row.start, row.size, found, session.native_id)

    def whole(self, seq: int, excerpt: str) -> str:
        """Return an excerpt of a message. If it was cut within a secret, return the text before the secret."""
        if not excerpt.endswith("…"):
            return excerpt
        from everturn.secrets.redaction import find_secrets  # its rules take a while to compile

        text = self.read_message(seq)[1]
        words = excerpt.removesuffix("…").rstrip()
        at = text.find(words)
        if at < 0:  # it was made printable; few secrets contain spaces
            return f"{words.rpartition(' ')[0]}…"
        end, first = at + len(words), max(0, at - _SECRET_MARGIN)
        for found in find_secrets(text[first : end + _SECRET_MARGIN]):
            if first + found.start < end < first + found.end:
                return f"{text[at : max(at, first + found.start)].rstrip()}…"
        return excerpt

    def around(self, seq: int, words: str) -> str:
        """Return the text of a message that holds some words, of a long one what stands around their first place."""
        text = self.read_message(seq)[1]
        if len(text) <= _WHOLE_TEXT:
            return text
        at = max(0, text.find(words))
        return text[max(0, at - _SECRET_MARGIN) : at + len(words) + _SECRET_MARGIN]

    def excerpt(self, seq: int, field: str, width: int) -> str:
        """Return the beginning of a message's text in one field of the index."""
        return self.whole(seq, one_line(self._field(seq, field), width))

    def ends(self, seq: int, field: str, width: int) -> tuple[str, str]:
        """Return the beginning and the end of such a text, together of at most `width` cells; no end if it fits whole."""
        words = one_line(self._field(seq, field), _LONGEST)
        if len(words) <= width and count_cells(words) <= width:
            return words, ""
        start = _after_secret(words, _last_part(words, int(width * _END_SHARE)))
        tail = words[start:]
        return self.whole(seq, cut_words(words[:start], width - count_cells(tail))), tail

    def _field(self, seq: int, field: str) -> str:
        row = next(self._store.messages(self._session.id, seq, seq), None)
        blocks = self._records.message(row).blocks if row is not None else ()
        return "\n".join(block.text for block in blocks if block.field == field and block.text)

    def result_text(self, call: Call) -> str:
        """Return the text of a call's result, "" if there is none."""
        block = self._records.result(call)
        return block.text if block is not None else ""

    @property
    def session(self) -> int:
        """Row id of the session."""
        return self._session.id

    def read_message(self, seq: int) -> tuple[MessageRow | None, str]:
        """Return the row of a message and its words; None and "" if there is none."""
        if (known := self._texts.get(seq)) is not None:
            return known
        row = next(self._store.messages(self._session.id, seq, seq), None) if seq >= 0 else None
        text = words_of(self._records.message(row)) if row is not None else ""
        self._texts.put(seq, (row, text), len(text))
        return row, text


def _last_part(words: str, width: int) -> int:
    """Return where the last part of a text begins that takes at most `width` cells: at a sentence, else at a word."""
    start, used = len(words), 0
    while start and (used := used + count_cells(words[start - 1])) <= width:
        start -= 1
    half = start + (len(words) - start) // 2
    marks = [words.find(mark, start, half) for mark in (". ", "。", "! ", "！", "? ", "？", ": ", "：", " - ", " ")]
    return next((at + 1 for at in marks if at >= 0), start)


def _after_secret(words: str, start: int) -> int:
    """Return where the end of a text begins, behind a secret if it would begin within one."""
    from everturn.secrets.redaction import find_secrets  # its rules take a while to compile

    first = max(0, start - _SECRET_MARGIN)
    for found in find_secrets(words[first : start + _SECRET_MARGIN]):
        if first + found.start < start < first + found.end:
            return first + found.end
    return start


_END_SHARE = 0.4  # of a text that is shown without its middle
T = TypeVar("T")


class _RecentTexts(Generic[T]):
    """What was read of messages; of too much text, what was used longest ago is dropped."""

    def __init__(self) -> None:
        self._held: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._size = 0

    def get(self, key: Hashable) -> T | None:
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key][0]

    def put(self, key: Hashable, value: T, size: int) -> None:
        self._held[key] = value, size
        self._size += size
        while self._size > _CACHED_TEXT or len(self._held) > _CACHED_MESSAGES:
            self._size -= self._held.popitem(last=False)[1][1]


def words_of(message: Message) -> str:
    """Return all text of a message on one line, for quotes to be searched in. No quote can span two texts."""
    return _TEXT_SEPARATOR.join(" ".join(text.split()) for text in _message_texts(message) if text)


def _message_texts(message: Message) -> Iterator[str]:
    room = _LONGEST
    for block in message.blocks:
        for text in _block_texts(block):
            yield text[:room]
            room -= len(text)
            if room <= 0:
                return


def _block_texts(block: Block) -> Iterator[str]:
    yield block.text
    if block.call is not None:
        yield from (block.call.name, block.call.command, block.call.path, block.call.prompt)
        yield from _find_strings(block.call.input, 6)
    if block.result is not None:
        yield block.result.path
        yield from (path for _, path in block.result.others)


def _find_strings(value: Any, deep: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list) and deep:
        for one in value.values() if isinstance(value, dict) else value:
            yield from _find_strings(one, deep - 1)


def _matching_beginning(quote: str, text: str) -> str:
    """Return the longest beginning of a quote that occurs in the text."""
    words = " ".join(quote.removesuffix("…").split())
    if not words or words in text:
        return words
    low = find_highest(len(words), lambda length: words[:length] in text)
    return words[:low].rstrip() if low >= _SHORTEST else ""


#: A message number and text of that message.
Words = tuple[int, str]


class DraftStatement(Struct, frozen=True):
    weight: float
    make: Callable[[], Statement]


class StatementMaterial(Struct, frozen=True):
    """The material for the sections of a document."""

    state: SessionState
    proofs: Proofs
    results: dict[int, int]  # message of a call → message of its result
    text: SessionText
    summaries: tuple[MessageRow, ...] = ()


def proven_statement(draft: DraftStatement) -> Statement:
    made = draft.make()
    return replace(made, weight=draft.weight)


def saying_statement(
    material: StatementMaterial,
    weight: float,
    words: Words,
    lead: str = "",
    tail: str = "",
    label: str = "",
    width: int = 400,
) -> DraftStatement:
    """Draft a quotation of a message between words of ours."""

    def make() -> Statement:
        seq, text = words
        shown = safe_excerpt(material, words, width)
        return _make_statement(f"{lead}{shown}{tail}", find_evidence(material, [(seq, text)]), label)

    return DraftStatement(weight, make)


def fact_statement(
    material: StatementMaterial, weight: float, text: Callable[[], str], refs: Sequence[Words], label: str = ""
) -> DraftStatement:
    """Draft a statement of ours about some messages."""
    return DraftStatement(weight, lambda: _make_statement(text(), find_evidence(material, refs), label))


def safe_excerpt(material: StatementMaterial, words: Words, width: int) -> str:
    """Return the beginning of a text, never with half a secret."""
    seq, text = words
    return material.proofs.whole(seq, one_line(text, width))


def find_evidence(material: StatementMaterial, refs: Iterable[Words]) -> tuple[Evidence, ...]:
    """Return the evidence in each message that exists."""
    found = (material.proofs.evidence(seq, quote) for seq, quote in refs if seq >= 0)
    return tuple(one for one in found if one is not None)


def _make_statement(text: str, evidence: tuple[Evidence, ...], label: str) -> Statement:
    return Statement(text, evidence, True if evidence else None, label)


# --- weights ---
def weight_by_rank(top: float, rank: int, floor: float, by: float = 0.94) -> float:
    """Return the weight at `rank`: `top` for the first, falling towards `floor`."""
    return float(floor + (top - floor) * by**rank)


def rank_latest(items: Sequence[T]) -> Iterator[tuple[int, T]]:
    """Yield items with their rank, the last first."""
    return enumerate(reversed(items))


def weigh_by_use(files: Sequence[FileState]) -> Iterator[tuple[float, FileState]]:
    """Yield files, given by last use, with a weight from 0 to 1: late and often used files first."""
    weighed = []
    for rank, one in rank_latest(files):
        use = min(1.0, log2(1 + 2 * one.count + one.reads) / 5)
        weighed.append((0.6 * 0.95**rank + 0.4 * use, one))
    return iter(sorted(weighed, key=lambda pair: -pair[0]))


def weigh_by_mention(named: Sequence[FileMention]) -> list[tuple[float, FileMention]]:
    """Return files that were only named, given by last mention, with a weight from 0 to 1."""
    weighed = [(0.5 * 0.98**rank + 0.5 * min(1.0, log2(1 + one.count) / 5), one) for rank, one in rank_latest(named)]
    return sorted(weighed, key=lambda pair: -pair[0])


# --- checks ---
class CheckedStatement(Struct, frozen=True):
    """A checked statement, and why it does not hold."""

    statement: Statement  # with `verified` and `reason` set
    reasons: tuple[str, ...] = ()  # empty when it holds

    @property
    def holds(self) -> bool:
        """Whether the check found nothing wrong."""
        return not self.reasons


def check_document(
    store: Store, sources: Sources, statements: Iterable[Statement], proofs: Proofs | None = None
) -> list[CheckedStatement]:
    """Check the evidence of statements. The records of each session are opened once; what `proofs` has read is not read again."""
    resolver = _EvidenceResolver(store, sources, proofs)
    return [mark_checked(one, list(resolver.find_faults(one))) for one in statements]


def mark_checked(statement: Statement, reasons: list[str]) -> CheckedStatement:
    """Set `verified` and `reason`. A client's summary is a source, not a fact, and is never marked verified."""
    verified = not reasons and statement.label != "compaction summary"
    return CheckedStatement(replace(statement, verified=verified, reason="; ".join(reasons)), tuple(reasons))


class _EvidenceResolver:
    def __init__(self, store: Store, sources: Sources, proofs: Proofs | None = None) -> None:
        self._store, self._sources = store, sources
        self._open: dict[int, Proofs] = {} if proofs is None else {proofs.session: proofs}
        self._texts = _RecentTexts[str]()  # several statements cite the same message

    def find_faults(self, statement: Statement) -> Iterator[str]:
        if not statement.evidence:
            yield "it cites no message"
        for one in statement.evidence:
            row, words = self._read_message(one)
            if row is None:
                yield f"there is no message {one.message + 1} in that session"
            elif row.turn != one.turn:
                yield f"message {one.message + 1} belongs to turn {row.turn + 1}, not to turn {one.turn + 1}"
            elif (row.start, row.size) != (one.start, one.size):
                yield f"message {one.message + 1} is not at the position that the evidence gives"
            elif one.quote and not any(has_quote(one.quote, text) for text in self._texts_of(one, row, words)):
                yield f"the quotation {quote_short(one.quote)} does not occur in message {one.message + 1}"

    def _read_message(self, one: Evidence) -> tuple[MessageRow | None, str]:
        if (
            one.session not in self._open
            and next(self._store.messages(one.session, one.message, one.message), None) is None
        ):
            return None, ""  # nor need there be such a session
        return self._proofs(one.session).read_message(one.message)

    def _proofs(self, session: int) -> Proofs:
        if session not in self._open:
            self._open[session] = Proofs(self._store, self._sources, self._store.session(session)[0])
        return self._open[session]

    def _texts_of(self, one: Evidence, row: MessageRow, words: str) -> Iterator[str]:
        place = (one.session, row.seq)
        text = self._texts.get(place)
        if text is None:
            text = normalise_quotes(words)
            self._texts.put(place, text, len(text))
        yield text
        for call in self._store.calls(one.session, row.turn) if one.call is not None else ():
            if (call.seq, call.idx) == (row.seq, one.call):
                yield normalise_quotes(self._proofs(one.session).result_text(call))


def normalise_quotes(text: str) -> str:
    """Return the text with single spaces and plain quotes."""
    if text.isascii():
        return " ".join(text.replace('"', "'").replace("`", "'").split())
    return " ".join(text.translate(_QUOTE_TABLE).split())


def has_quote(quote: str, text: str) -> bool:
    """Whether a quote occurs in a normalised text. `…` in it stands for omitted text."""
    words = normalise_quotes(quote)
    if any(one and one in text for one in (words, words.rstrip(".,;:!?"))):
        return True
    parts = [part for part in _CUT.split(words) if part]
    if parts == [words]:
        return False
    at = 0
    for part in parts:
        start = text.find(part, at)
        if start < 0:
            return False
        at = start + len(part)
    return bool(parts)


def quote_short(text: str) -> str:
    return f'"{one_line(text, _WIDTH)}"'
