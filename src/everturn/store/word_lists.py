"""The words of an archive in PostgreSQL: the stems of every entry, and for every word the entries that hold it, best first.

How well an entry matches a word does not depend on the rest of the archive, so the writer computes it once: a share from 0 to
255. A segment covers SEGMENT entries or more. Its words are sorted and packed, many of them into one row; of a word with
more than FIRST entries the best are in that row and the others in blocks of growing size, so that a search reads as many as it wants.

New entries are unlisted: a search reads all of them. The writer that finds SEGMENT of them lists them, and merges small segments
into larger ones. So a word is in few segments, and each entry is listed three times at most in the life of an archive.

The stems of an entry are stored too (`pack_fields`), compressed: searches check phrases and count words with them, and whoever removes
an entry learns from them which lists hold it.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import NamedTuple

from everturn.model.vocabulary import FIELDS
from everturn.store.contract import IndexQuery
from everturn.store.index import BY_FIELD, ENOUGH, EntryKey, Phrase, length_factor, phrase_share, stem_word
from everturn.store.postgres_driver import PostgresDriver
from everturn.text.terms import terms as split_terms

LONGEST = 500  # characters of a term, at most 2,000 bytes
SEGMENT = 500  # entries
FIRST = 256
#: Segments of at least and at most so many entries are merged when there are so many of them.
MERGED = ((0, 9_999, 20), (10_000, 99_999, 10))
AT_ONCE = 20_000  # entries of a new segment at most
LARGEST = 250_000  # of a merged one
PAGES = 1 << 17  # the numbers that a place has room for
OWN = 0xFFFFFF  # the seq of a session's own entry, in pages and keys
_ROW = 250  # places of a row of many words; a letter counts as a quarter
_PLACE = (1 << 23) - 1

_TEXTS = '"entry_text" ("session","seq","stems")'
_LISTS = '"word_list" ("seg","first","terms","ends","places")'
_RESTS = '"word_list_rest" ("seg","block","term","places")'
_NOTE = 'INSERT INTO "unlisted_entry" ("session","seqs") VALUES (?,?) RETURNING "id"'
_WAITING = 'SELECT COALESCE(SUM(CARDINALITY("seqs")),0) FROM "unlisted_entry"'
_TAKE = 'DELETE FROM "unlisted_entry" RETURNING "id","session","seqs"'
_STEMS = """
    SELECT e."session", e."seq", e."stems" FROM UNNEST(?::bigint[],?::bigint[]) AS k(s,q)
    JOIN "entry_text" e ON e."session"=k.s AND e."seq"=k.q::integer
"""
_SEGMENT = """
    INSERT INTO "word_segment" ("seg","entries","pages") VALUES (nextval('word_segment_number'),?,?) RETURNING "seg"
"""
_SIZES = 'SELECT "seg","entries",CARDINALITY("pages") FROM "word_segment" ORDER BY "seg"'
_PAGES = 'SELECT "pages" FROM "word_segment" WHERE "seg"=?'
_READ_LISTS = 'SELECT "terms",array_send("ends"),array_send("places") FROM "word_list" WHERE "seg"=?'
_READ_RESTS = 'SELECT "term",array_send("places") FROM "word_list_rest" WHERE "seg"=?'
_UNNOTE = """
    UPDATE "unlisted_entry" SET "seqs"=ARRAY(SELECT q FROM UNNEST("seqs") AS q WHERE NOT q::bigint=ANY(?::bigint[])) WHERE "session"=?
"""
_SEGMENTS_OF = """
    SELECT g."seg", p.n-1, p.page FROM "word_segment" g CROSS JOIN LATERAL UNNEST(g."pages") WITH ORDINALITY AS p(page,n)
    WHERE p.page>>18=?
"""
_LISTS_OF = """
    SELECT DISTINCT ON (b."first") b."first", b."terms", array_send(b."ends"), array_send(b."places") FROM UNNEST(?::text[]) AS t(term)
    CROSS JOIN LATERAL (
        SELECT l."first", l."terms", l."ends", l."places" FROM "word_list" l WHERE l."seg"=? AND l."first"<=t.term
        ORDER BY l."first" DESC LIMIT 1) b
"""
_RESTS_OF = 'SELECT "term","block",array_send("places") FROM "word_list_rest" WHERE "seg"=? AND "term"=ANY(?)'

#: The stems of an entry in their order, by number of the field.
FieldStems = list[tuple[int, list[str]]]

_PLAIN, _DEFLATED = b"\x00", b"\x02"
_LEVEL, _WINDOW = 4, -13
_MARKS = tuple(chr(1 + field) for field in range(len(BY_FIELD)))
_MARKED = tuple((field, mark.encode()) for field, mark in enumerate(_MARKS))
_ARRAY = Struct(">iiiiii")  # bytes, dimensions, whether there are NULLs, type of the values, number, first number
_INT4 = 23


# --- the stems of an entry ---


def pack_fields(fields: FieldStems) -> bytes:
    """Return the stems of an entry as they are stored: for each field a mark, then a stem a line; compressed."""
    text = "".join(["{}\n{}\n".format(_MARKS[field], "\n".join(stems)) for field, stems in fields]).encode()
    # For short texts zlib takes a tenth of the time of zstd, whose context is made anew for each.
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW)
    packed = packer.compress(text) + packer.flush()
    return _DEFLATED + packed if len(packed) < len(text) else _PLAIN + text


def unpack_text(stored: bytes) -> bytes:
    """Return the stems of an entry with their marks."""
    return zlib.decompress(memoryview(stored)[1:], _WINDOW) if stored[:1] == _DEFLATED else bytes(stored[1:])


def split_fields(text: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield each field and its part of the text, from its mark to the next one."""
    starts = [(at, field) for field, mark in _MARKED if (at := text.find(mark)) >= 0]
    ends = [at for at, _ in starts[1:]]
    for (at, field), end in zip(starts, [*ends, len(text)], strict=True):
        yield field, text[at:end]


def unpack_fields(stored: bytes) -> FieldStems:
    """Return the stems of an entry by field."""
    return [(field, part.decode().split("\n")[1:-1]) for field, part in split_fields(unpack_text(stored))]


def word_shares(fields: FieldStems) -> dict[str, int]:
    """Return how well an entry matches each of its words, from 0 to 255."""
    room = ENOUGH * length_factor(sum(len(stems) for _, stems in fields))
    if len(fields) == 1:
        [(field, stems)] = fields
        weight, counts = BY_FIELD[field], Counter(stems)
        by_count = {n: int(255 * weight * n / (weight * n + room)) for n in set(counts.values())}
        return {term: by_count[n] for term, n in counts.items()}
    seen: dict[str, float] = {}
    for field, stems in fields:
        for term, n in Counter(stems).items():
            seen[term] = seen.get(term, 0.0) + BY_FIELD[field] * n
    return {term: int(255 * much / (much + room)) for term, much in seen.items()}


# --- phrases in the stems of an entry ---


class QueryWord(NamedTuple):
    """A word that is looked up: a whole one, or all from `term` to `beyond`."""

    term: str
    beyond: str | None


def phrase_words(phrase: Phrase) -> list[QueryWord]:
    """Return the words of a phrase: stems, and the beginning of the last one if it matches by prefix."""
    # Analysed again, which changes no term and leaves no syntax.
    plain = [word for term in phrase for word in split_terms(term)]
    words = [QueryWord(stem_word(word)[:LONGEST], None) for word in plain]
    if words and phrase[-1].endswith("*"):
        beginning = plain[-1][:LONGEST]  # a prefix has no stem
        words[-1] = QueryWord(beginning, f"{beginning}\U0010ffff")
    return words


class PhraseMatcher:
    """Finds the phrases of a query in the stems of entries."""

    def __init__(self, query: IndexQuery, phrases: Sequence[Phrase]) -> None:
        patterns = [(number, _pattern(phrase), len(phrase)) for number, phrase in enumerate(phrases)]
        single = {pattern for _, pattern, _ in patterns if pattern.count(b"\n") == 2}
        words = {pattern: [b"\n%b\n" % word for word in pattern.split(b"\n")[1:-1]] for _, pattern, _ in patterns}
        self._words = [one for one in patterns if one[1] in single]
        #: Of a phrase, words that are looked for anyway: without them the phrase is not there.
        self._others = [
            (one, [word for word in words[one[1]] if word in single])
            for one in patterns
            if one[1] and one[1] not in single
        ]
        self._without = [pattern for phrase in query.without if (pattern := _pattern(phrase))]
        self._groups = [{phrases.index(phrase) for phrase in group} for group in query.groups]
        self._fields = {FIELDS.index(name) for name in query.fields}

    def held_phrases(self, stems: bytes) -> tuple[tuple[int, float], ...]:
        """Return the phrases that an entry holds, by number, with its share of each."""
        text = unpack_text(stems)
        present = [one for one in self._words if one[1] in text]
        there = {one[1] for one in present}
        present += [one for one, words in self._others if there.issuperset(words) and one[1] in text]
        if not present:
            return ()
        present.sort()
        fields = list(split_fields(text))
        factor = length_factor(text.count(b"\n") - len(fields))
        if self._fields:
            fields = [one for one in fields if one[0] in self._fields]
        held = []
        for number, pattern, length in present:
            seen = sum([BY_FIELD[field] * n for field, part in fields if (n := _count(part, pattern))])
            if seen:
                held.append((number, phrase_share(seen, factor, length)))
        return tuple(held)

    def is_match(self, stems: bytes, held: Sequence[tuple[int, float]]) -> bool:
        """Whether an entry with these phrases has one of every group, and none of what it must not have."""
        numbers = {number for number, _ in held}
        if not numbers or any(numbers.isdisjoint(group) for group in self._groups):
            return False
        if not self._without:
            return True
        text = unpack_text(stems)
        fields = [part for field, part in split_fields(text) if not self._fields or field in self._fields]
        return not any(pattern in part for pattern in self._without for part in fields)


def _pattern(phrase: Phrase) -> bytes:
    """Return the bytes of a phrase in stems: a line each; of a prefix, without an end."""
    words = phrase_words(phrase)
    lines = "".join(f"\n{word.term}" for word in words)
    return f"{lines}{'' if words and words[-1].beyond else chr(10)}".encode("utf-8", "replace") if words else b""


def _count(text: bytes, pattern: bytes) -> int:
    """Count a phrase, also where the next one begins with the line feed that ends it."""
    n, at = 0, text.find(pattern)
    while at >= 0:
        n, at = n + 1, text.find(pattern, at + 1)
    return n


# --- lists ---


class WordLists:
    """The lists of one archive. All changes happen inside a write transaction."""

    def __init__(self, driver: PostgresDriver) -> None:
        self._driver = driver
        self._new: dict[EntryKey, dict[str, int]] = {}  # entries of this transaction, with the shares of their words
        self._noted: dict[int, dict[EntryKey, dict[str, int]]] = {}  # those of earlier ones, by note

    def add(self, session: int, entries: Iterable[tuple[int, FieldStems]]) -> None:
        """Add entries, each with its stems by field."""
        self._driver.copy_packed(_TEXTS, (self._add_entry(session, seq, fields) for seq, fields in entries))

    def _add_entry(self, session: int, seq: int, fields: FieldStems) -> bytes:
        self._new[session, seq] = word_shares(fields)
        stems = pack_fields(fields)
        return _ENTRY.pack(3, 8, session, 4, seq, len(stems)) + stems

    def note_new(self) -> None:
        """Note the entries of this transaction as unlisted, so that a search finds them."""
        new, self._new = self._new, {}
        if sum(map(len, self._noted.values())) > SEGMENT:  # another writer has listed some of them
            self._noted = {}
        by_session: dict[int, list[int]] = {}
        for session, seq in new:
            by_session.setdefault(session, []).append(seq)
        for session, seqs in by_session.items():
            note = int(self._driver.all(_NOTE, [session, seqs])[0][0])
            self._noted[note] = {(session, seq): new[session, seq] for seq in seqs}

    def finish_write(self, failed: bool) -> None:
        """List what is new if it is enough for a segment; else note it as unlisted."""
        if failed:
            self._new, self._noted = {}, {}
        elif len(self._new) >= SEGMENT:
            new, self._new = sorted(self._new.items()), {}
            for first in range(0, len(new), AT_ONCE):
                self._write_segment(dict(new[first : first + AT_ONCE]))
            self._merge()
        elif self._new:
            self.note_new()
            if self._driver.all(_WAITING)[0][0] >= SEGMENT:
                self.list_all()

    def list_all(self) -> None:
        """List every unlisted entry. What this writer noted itself, and nobody has changed since, it need not read."""
        noted, self._noted = self._noted, {}
        known: dict[EntryKey, dict[str, int]] = {}
        keys = []
        for note, session, seqs in self._driver.all(_TAKE):
            if (own := noted.get(note)) and len(own) == len(seqs):
                known.update(own)
            keys += [(session, seq) for seq in seqs]
        keys.sort()
        for first in range(0, len(keys), AT_ONCE):
            some = keys[first : first + AT_ONCE]
            shares = {key: known[key] for key in some if key in known}
            shares.update((key, word_shares(fields)) for key, fields in self._read([k for k in some if k not in known]))
            if shares:
                self._write_segment(shares)
        self._merge()

    def _read(self, keys: Sequence[EntryKey]) -> Iterator[tuple[EntryKey, FieldStems]]:
        """Yield the stems of entries, by field."""
        for first in range(0, len(keys), SEGMENT):
            columns = [list(column) for column in zip(*keys[first : first + SEGMENT], strict=True)]
            for session, seq, stems in self._driver.all(_STEMS, columns):
                yield (session, seq), unpack_fields(stems)

    # --- segments ---
    def _write_segment(self, entries: Mapping[EntryKey, dict[str, int]]) -> None:
        pages: dict[int, int] = {}
        lists: defaultdict[str, list[int]] = defaultdict(list)
        for session, seq in sorted(entries):
            number = seq & OWN
            page = pages.setdefault(session << 18 | number >> 6, len(pages))
            place = page << 6 | number & 63
            for term, share in entries[session, seq].items():
                lists[term].append(share << 23 | place)
        self._write_lists(len(entries), list(pages), lists)

    def _write_lists(self, entries: int, pages: list[int], lists: Mapping[str, Iterable[int]]) -> None:
        [(seg,)] = self._driver.all(_SEGMENT, [entries, pages])
        ordered = ((term, sorted(lists[term], reverse=True)) for term in sorted(lists))
        rests: list[bytes] = []
        self._driver.copy_packed(_LISTS, _list_rows(seg, ordered, rests))
        self._driver.copy_packed(_RESTS, rests)

    def _merge(self) -> None:
        """Merge small segments if there are too many of them, as many as fit into one."""
        for least, largest, most in MERGED:
            small = [row for row in self._driver.all(_SIZES) if least <= row[1] <= largest]
            segs: list[int] = []
            entries = pages = 0
            for seg, size, width in small if len(small) >= most else []:
                if entries + size <= LARGEST and pages + width <= PAGES:
                    segs, entries, pages = [*segs, seg], entries + size, pages + width
            if len(segs) > 1:
                self._merge_segments(segs, entries)

    def _merge_segments(self, segs: list[int], entries: int) -> None:
        pages: list[int] = []
        lists: dict[str, array[int]] = {}
        for seg in segs:
            base = len(pages) << 6
            for terms, ends, places in self._driver.each(_READ_LISTS, [seg]):
                start, values = 0, [place + base for place in _read_array(places)]
                for term, end in zip(terms.split("\n"), _read_array(ends), strict=True):
                    lists.setdefault(term, array("i")).extend(values[start:end])
                    start = end
            for term, places in self._driver.each(_READ_RESTS, [seg]):
                lists[term].extend([place + base for place in _read_array(places)])
            pages += self._driver.all(_PAGES, [seg])[0][0]
        for table in ("word_list", "word_list_rest", "word_segment"):
            self._driver.run(f'DELETE FROM "{table}" WHERE "seg"=ANY(?)', [segs])
        self._write_lists(entries, pages, lists)

    # --- removal ---
    def remove(self, session: int, seqs: Sequence[int]) -> None:
        """Remove entries that are present: from the lists of their words, and their stems."""
        gone = [seq for seq in seqs if self._new.pop((session, seq), None) is None]
        if gone:
            self._driver.run(_UNNOTE, [list(gone), session])
            self._driver.run("""DELETE FROM "unlisted_entry" WHERE "seqs"='{}'""")
            self._remove_places(session, set(gone))
        self._driver.run('DELETE FROM "entry_text" WHERE "session"=? AND "seq"=ANY(?)', [session, list(seqs)])

    def _remove_places(self, session: int, seqs: set[int]) -> None:
        numbers = {seq & OWN for seq in seqs}
        by_segment: dict[int, set[int]] = {}
        for seg, page, key in self._driver.all(_SEGMENTS_OF, [session]):
            first = (key & 0x3FFFF) << 6
            places = {page << 6 | number & 63 for number in numbers if first <= number < first + 64}
            by_segment.setdefault(seg, set()).update(places)
        wanted = {seg: places for seg, places in by_segment.items() if places}
        if wanted:
            stems = self._read([(session, seq) for seq in seqs])
            terms = sorted({term for _, fields in stems for _, words in fields for term in words})
            for seg, places in wanted.items():
                self._rewrite_lists(seg, terms, places)

    def _rewrite_lists(self, seg: int, terms: list[str], gone: set[int]) -> None:
        """Take places out of the lists of some words."""
        driver = self._driver
        lost: Counter[str] = Counter()
        for term, block, packed in driver.all(_RESTS_OF, [seg, terms]):
            before = _read_array(packed)
            if len(left := [place for place in before if place & _PLACE not in gone]) < len(before):
                lost[term] += len(before) - len(left)
                driver.run(
                    'UPDATE "word_list_rest" SET "places"=? WHERE "seg"=? AND "term"=? AND "block"=?',
                    [left, seg, term, block],
                )
        old, rows = [], []
        for first, names, ends, packed in driver.all(_LISTS_OF, [terms, seg]):
            before = _read_array(packed)
            left = [place for place in before if place & _PLACE not in gone]
            if len(left) < len(before) or lost[first]:
                old.append(first)
                made = _left_row(names.split("\n"), _read_array(ends), before, gone, lost[first])
                rows += [_list_row(seg, *made)] if made[0] else []
        driver.run('DELETE FROM "word_list" WHERE "seg"=? AND "first"=ANY(?)', [seg, old])
        driver.copy_packed(_LISTS, rows)
        if driver.one('SELECT 1 FROM "word_list" WHERE "seg"=? LIMIT 1', [seg]) is None:
            for table in ("word_list_rest", "word_segment"):
                driver.run(f'DELETE FROM "{table}" WHERE "seg"=?', [seg])


_ENTRY = Struct(">hiqiii")
_ROW_START = Struct(">hiqi")
_REST_START = Struct(">hiqiii")


def _list_rows(seg: int, lists: Iterable[tuple[str, list[int]]], rests: list[bytes]) -> Iterator[bytes]:
    """Yield rows of sorted words in the server's binary form; add those of the rest of long lists to `rests`."""
    terms: list[str] = []
    ends: list[int] = []
    places: list[int] = []
    size = 0.0
    for term, some in lists:
        is_long = len(some) > FIRST
        if terms and (is_long or size + len(some) > _ROW):
            yield _list_row(seg, terms, ends, places)
            terms, ends, places, size = [], [], [], 0.0
        if is_long:
            yield _list_row(seg, [term], [len(some)], some[:FIRST])
            rests.extend(_rest_rows(seg, term, some))
            continue
        terms.append(term)
        places += some
        ends.append(len(places))
        size += len(some) + 1 + len(term) / 4
    if terms:
        yield _list_row(seg, terms, ends, places)


def _rest_rows(seg: int, term: str, places: list[int]) -> Iterator[bytes]:
    start, block, name = FIRST, 0, term.encode()
    while start < len(places):
        end = start + (FIRST << block + 1)
        head = _REST_START.pack(4, 8, seg, 4, block, len(name))
        yield head + name + _pack_array(places[start:end])
        start, block = end, block + 1


def _left_row(
    terms: list[str], ends: Sequence[int], places: Sequence[int], gone: set[int], lost: int
) -> tuple[list[str], list[int], list[int]]:
    """Return a row without some places, and without words that have none left. `lost` is what the rest of its list has lost."""
    left_terms: list[str] = []
    left_ends: list[int] = []
    left: list[int] = []
    start = 0
    for term, end in zip(terms, ends, strict=True):
        some = [place for place in places[start:end] if place & _PLACE not in gone]
        beyond = end - len(places) - lost if end > len(places) else 0
        if some or beyond > 0:
            left_terms.append(term)
            left += some
            left_ends.append(len(left) + beyond)
        start = end
    return left_terms, left_ends, left


def _list_row(seg: int, terms: Sequence[str], ends: Sequence[int], places: Sequence[int]) -> bytes:
    first, names = terms[0].encode(), "\n".join(terms).encode()
    start = _ROW_START.pack(5, 8, seg, len(first)) + first + len(names).to_bytes(4, "big") + names
    return start + _pack_array(ends) + _pack_array(places)


def _pack_array(values: Sequence[int]) -> bytes:
    """Return an array of integers in the server's binary form, with its length."""
    if not values:
        return _EMPTY_ARRAY
    both = array("i", (4,)) * (2 * len(values))
    both[1::2] = array("i", values)
    if sys.byteorder == "little":
        both.byteswap()
    return _ARRAY.pack(20 + 8 * len(values), 1, 0, _INT4, len(values), 1) + both.tobytes()


_EMPTY_ARRAY = Struct(">iiii").pack(12, 0, 0, _INT4)


def _read_array(sent: bytes) -> array[int]:
    """Return the integers of an array in the server's binary form."""
    both = array("i", sent[20:])
    if sys.byteorder == "little":
        both.byteswap()
    return both[1::2]
