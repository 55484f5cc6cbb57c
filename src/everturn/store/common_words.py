"""The best entries of common words in PostgreSQL, so that a search need not read every row that holds one.

How well an entry matches a word does not depend on the rest of the archive, so it is computed once. Entries are collected
in segments of about a thousand. A segment lists the words that at least LISTED of its entries hold, each with its best
entries: up to BEST in a small archive, fewer in a large one, where all segments together have enough. A word that is rare
everywhere is in no list; the index of `search_row` finds its few rows. Entries that are in no segment yet, at most about a
thousand, are noted as unlisted, and a search reads their rows.

A shared archive has no lists: they hold everybody's words, so nobody who reads for a person could use them.

A writer remembers the words of the entries it has noted, and makes the segment itself: that costs a tenth of what the
server would need. What other writers have left behind is listed by the server, from the rows of the index, in one statement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

from msgspec import Struct

from everturn.store.index import BY_FIELD, ENOUGH, LENGTH_MATTERS, USUAL_LENGTH, EntryKey, length_factor
from everturn.store.postgres_driver import PostgresDriver

SEGMENT = 1000  # entries, at least
LISTED = 8
BEST = 128
WANTED = 2000  # best entries of a word in all segments
FEWEST = 16  # of them in one segment
OWN = 0xFFFFFF  # the seq of a session's own entry
_SHARE = 56  # bits of a place: session and seq

_NOTE = 'INSERT INTO "unlisted" ("space","session","first_seq","last_seq","entries") VALUES (?,?,?,?,?)'
_FULL = 'SELECT "space" FROM "unlisted" GROUP BY "space" HAVING SUM("entries")>=?'
_TAKE = """
    DELETE FROM "unlisted" u USING UNNEST(?::bigint[],?::bigint[],?::bigint[],?::int[]) AS g(s,a,b,n)
    WHERE u."session"=g.s AND u."first_seq"=g.a AND u."last_seq"=g.b AND u."entries"=g.n RETURNING g.s,g.a,g.b,g.n
"""
#: A note whose entries have changed no longer fits what its writer remembers: the server lists it.
_CHANGED = """
    UPDATE "unlisted" SET "entries"="entries"-1
    WHERE "session"=? AND EXISTS (SELECT 1 FROM UNNEST(?::bigint[]) AS q WHERE q BETWEEN "first_seq" AND "last_seq")
"""
_SEGMENT = """
    INSERT INTO "common_segment" ("seg","space","entries","first_session","last_session")
    VALUES (nextval('common_segment_number'),?,?,?,?) RETURNING "seg",(SELECT COUNT(*) FROM "common_segment")
"""
_WORDS = '"common_word" ("space","term","seg","n","best")'
_LIST = f"""
WITH u AS MATERIALIZED (DELETE FROM "unlisted" WHERE "space"=? RETURNING "session", "first_seq", "last_seq"),
r AS MATERIALIZED (
    SELECT r."session", r."seq", r."field", r."size", r."tsv" FROM (SELECT DISTINCT * FROM u) u
    JOIN "search_row" r ON r."session"=u."session" AND r."seq" BETWEEN u."first_seq" AND u."last_seq"),
e AS MATERIALIZED (
    SELECT "session", "seq", {ENOUGH}*({1 - LENGTH_MATTERS}+{LENGTH_MATTERS / USUAL_LENGTH}*SUM("size"))::float8 AS room
    FROM r GROUP BY "session", "seq"),
s AS (
    INSERT INTO "common_segment" ("seg", "space", "entries", "first_session", "last_session")
    SELECT nextval('common_segment_number'), ?, COUNT(*), MIN("session"), MAX("session") FROM e HAVING COUNT(*)>0 RETURNING "seg", "space"),
h AS (
    SELECT r."session", r."seq", x.lexeme, SUM((?::float8[])[r."field"+1]*CARDINALITY(x.positions)) AS seen
    FROM r CROSS JOIN LATERAL UNNEST(r."tsv") x GROUP BY r."session", r."seq", x.lexeme),
p AS (
    SELECT h.lexeme, (h."session"<<32)|((h."seq"&{OWN})<<8)|LEAST(255, FLOOR(255*h.seen/(h.seen+e.room)))::bigint AS place
    FROM h JOIN e ON e."session"=h."session" AND e."seq"=h."seq"),
n AS (
    SELECT p.lexeme, COUNT(*) AS n, (ARRAY_AGG(p.place ORDER BY p.place&255 DESC, p.place DESC))[1: {BEST}] AS best
    FROM p GROUP BY p.lexeme HAVING COUNT(*)>={LISTED})
INSERT INTO "common_word" ("space", "term", "seg", "n", "best") SELECT s."space", n.lexeme, s."seg", n.n, n.best FROM n CROSS JOIN s
"""
#: Only the lists of words that the rows hold, in segments that may cover the session.
_REMOVE = """
    WITH t AS MATERIALIZED (SELECT DISTINCT u.lexeme FROM "search_row" r, UNNEST(r."tsv") u WHERE r."session"=?{0})
    UPDATE "common_word" p SET
    "best"=ARRAY(SELECT x FROM UNNEST(p."best") WITH ORDINALITY b(x,o) WHERE NOT (x>>32=?{1}) ORDER BY o),
    "n"=p."n"-(SELECT COUNT(*) FROM UNNEST(p."best") x WHERE x>>32=?{1})
    FROM "common_segment" s, t WHERE ? BETWEEN s."first_session" AND s."last_session" AND p."seg"=s."seg"
    AND p."space"=s."space" AND p."term"=t.lexeme AND EXISTS (SELECT 1 FROM UNNEST(p."best") x WHERE x>>32=?{1})
"""
_EMPTY = """
    WITH t AS MATERIALIZED (SELECT DISTINCT u.lexeme FROM "search_row" r, UNNEST(r."tsv") u WHERE r."session"=?{0})
    DELETE FROM "common_word" p USING "common_segment" s, t WHERE ? BETWEEN s."first_session" AND s."last_session" AND p."seg"=s."seg"
    AND p."space"=s."space" AND p."term"=t.lexeme AND p."best"='{{}}'
"""
_SHARED = """SELECT 1 FROM "setting" WHERE "key"='shared' AND "value"<>''"""

#: Session, first and last seq, and number of entries: a row of `unlisted`.
_Note = tuple[int, int, int, int]


class _Entry(Struct):
    """The words of an entry: for each row of the index its field and the positions of every term, two characters each."""

    rows: list[tuple[int, dict[str, str]]]
    size: int = 0

    def terms(self) -> Iterable[str]:
        """Return every term once."""
        return self.rows[0][1] if len(self.rows) == 1 else set(chain.from_iterable(held for _, held in self.rows))

    def list_in(self, places: dict[str, list[int]], place: int) -> None:
        """Add the place of this entry to the lists of its terms, below its share, from 0 to 255."""
        room = ENOUGH * length_factor(self.size)
        if len(self.rows) == 1:
            [(field, held)] = self.rows
            weight = BY_FIELD[field] / 2
            by_length = {
                n: int(255 * weight * n / (weight * n + room)) << _SHARE | place for n in set(map(len, held.values()))
            }
            for term, positions in held.items():
                if (some := places.get(term)) is not None:
                    some.append(by_length[len(positions)])
            return
        seen: dict[str, float] = {}
        for field, held in self.rows:
            weight = BY_FIELD[field] / 2
            for term, positions in held.items():
                if term in places:
                    seen[term] = seen.get(term, 0.0) + weight * len(positions)
        for term, much in seen.items():
            places[term].append(int(255 * much / (much + room)) << _SHARE | place)


class CommonWords:
    """The lists of one archive. All changes happen inside a write transaction."""

    def __init__(self, driver: PostgresDriver) -> None:
        self._driver = driver
        self._new: dict[EntryKey, _Entry] = {}  # of this transaction
        self._noted: dict[EntryKey, _Entry] = {}  # of earlier ones, noted as unlisted
        self._notes: list[_Note] = []
        self._is_shared = False

    def note(self, session: int, seq: int, field: int, positions: dict[str, str], size: int) -> None:
        """Note a new row of the index."""
        if self._is_shared:
            return
        entry = self._new.setdefault((session, seq), _Entry([]))
        entry.rows.append((field, positions))
        entry.size += size

    def finish_write(self, failed: bool) -> None:
        """List what was noted if it is enough for a segment; else note it as unlisted."""
        new, self._new = self._new, {}
        if failed or not new or self._has_no_lists():
            return
        if len(new) + len(self._noted) >= SEGMENT:
            entries = list({**self._take_noted(), **new}.items())
            size = -(-len(entries) // max(len(entries) // (2 * SEGMENT), 1))
            for first in range(0, len(entries), size):
                self._write_segment(dict(entries[first : first + size]))
            return
        notes = _ranges(new)
        self._driver.many(_NOTE, [(0, *note) for note in notes])
        self._notes += notes
        self._noted.update(new)
        for (space,) in self._driver.all(_FULL, [SEGMENT]):
            self._driver.run_by_index(_LIST, [space, space, list(BY_FIELD)])
            self._notes, self._noted = [], {}

    def _has_no_lists(self) -> bool:
        """Whether the archive is shared; drop the lists from before it was."""
        if not self._is_shared and self._driver.one(_SHARED) is not None:
            for table in ("common_word", "common_segment", "unlisted"):
                self._driver.run(f'DELETE FROM "{table}"')
            self._is_shared, self._noted, self._notes = True, {}, []
        return self._is_shared

    def _take_noted(self) -> dict[EntryKey, _Entry]:
        """Delete the notes of the remembered entries; return those whose note was still there, unchanged."""
        notes, noted, self._notes, self._noted = self._notes, self._noted, [], {}
        if not notes:
            return {}
        taken = self._driver.all(_TAKE, [list(column) for column in zip(*notes, strict=True)])
        keys = [(session, seq) for session, first, last, _ in taken for seq in range(first, last + 1)]
        return {key: noted[key] for key in keys if key in noted}

    def _write_segment(self, entries: dict[EntryKey, _Entry]) -> None:
        sessions = [session for session, _ in entries]
        [(seg, segments)] = self._driver.all(_SEGMENT, [0, len(entries), min(sessions), max(sessions)])
        held = Counter(chain.from_iterable(entry.terms() for entry in entries.values()))
        places: dict[str, list[int]] = {term: [] for term, n in held.items() if n >= LISTED}
        for (session, seq), entry in entries.items():
            entry.list_in(places, session << 24 | (seq & OWN))
        best = min(max(WANTED // (segments + 1), FEWEST), BEST)
        rows = ((0, term, seg, held[term], _best_first(some, best)) for term, some in sorted(places.items()))
        self._driver.copy(_WORDS, rows)

    def remove(self, session: int, seqs: Sequence[int] | None = None) -> None:
        """Take a session, or some of its entries, out of the lists. Call it before their rows are deleted."""
        rows, places = "", ""
        given: list[object] = []
        wanted: list[object] = []
        if seqs is None:
            self._new = {key: entry for key, entry in self._new.items() if key[0] != session}
            self._driver.run('DELETE FROM "unlisted" WHERE "session"=?', [session])
        else:
            for seq in seqs:
                self._new.pop((session, seq), None)
            self._driver.run(_CHANGED, [session, list(seqs)])
            rows, given = ' AND r."seq"=ANY(?)', [list(seqs)]
            places, wanted = " AND (x>>8&16777215)=ANY(?)", [[seq & OWN for seq in seqs]]
        one = [session, *wanted]
        self._driver.run(_REMOVE.format(rows, places), [session, *given, *one, *one, session, *one])
        self._driver.run(_EMPTY.format(rows), [session, *given, session])


def _best_first(places: list[int], most: int) -> str:
    """Return the best places as the literal of an array."""
    places.sort(reverse=True)
    return f"{{{','.join([str((one & _PLACE) << 8 | one >> _SHARE) for one in places[:most]])}}}"


_PLACE = (1 << _SHARE) - 1


def _ranges(keys: Iterable[EntryKey]) -> list[_Note]:
    """Return the entries as ranges of each session. A session's own entry is a range of its own."""
    by_session: dict[tuple[int, bool], list[int]] = {}
    for session, seq in keys:
        by_session.setdefault((session, seq < 0), []).append(seq)
    return [(session, min(seqs), max(seqs), len(seqs)) for (session, _), seqs in by_session.items()]
