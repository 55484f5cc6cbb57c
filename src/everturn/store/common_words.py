"""The best entries of common words in PostgreSQL, so that a search need not read every row that holds one.

How well an entry matches a word does not depend on the rest of the archive, so it is computed once. Entries are collected
in segments of about a thousand. A segment lists the words that at least LISTED of its entries hold, each with the best BEST
entries. A word that is rare everywhere is in no list; the index of `search_row` finds its few rows. Entries that are in no
segment yet, at most about a thousand, are noted as unlisted, and a search reads their rows.

The server makes a segment from the rows of the index, in one statement, when a writer has added enough of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from everturn.store.index import BY_FIELD, ENOUGH, LENGTH_MATTERS, USUAL_LENGTH
from everturn.store.postgres_driver import PostgresDriver

SEGMENT = 1000  # entries, at least
LISTED = 8
BEST = 128
OWN = 0xFFFFFF  # the seq of a session's own entry

_NOTE = 'INSERT INTO "unlisted" ("space","session","first_seq","last_seq","entries") VALUES (?,?,?,?,?)'
_FULL = 'SELECT "space" FROM "unlisted" GROUP BY "space" HAVING SUM("entries")>=?'
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
    DELETE FROM "common_word" p USING "common_segment" s
    WHERE ? BETWEEN s."first_session" AND s."last_session" AND p."seg"=s."seg" AND p."best"='{}'
"""


class CommonWords:
    """The lists of one archive. All changes happen inside a write transaction."""

    def __init__(self, driver: PostgresDriver) -> None:
        self._driver = driver
        self._has_new = False

    def note(self, space: int, session: int, first: int, last: int, entries: int) -> None:
        """Note new entries of a session."""
        self._driver.run(_NOTE, [space, session, first, last, entries])
        self._has_new = True

    def finish_write(self, failed: bool) -> None:
        """List what was noted, if it is enough for a segment."""
        if self._has_new and not failed:
            for (space,) in self._driver.all(_FULL, [SEGMENT]):
                self._driver.run_by_index(_LIST, [space, space, list(BY_FIELD)])
        self._has_new = False

    def remove(self, session: int, seqs: Sequence[int] | None = None) -> None:
        """Take a session, or some of its entries, out of the lists. Call it before their rows are deleted."""
        rows, places = "", ""
        given: list[object] = []
        wanted: list[object] = []
        if seqs is None:
            self._driver.run('DELETE FROM "unlisted" WHERE "session"=?', [session])
        else:
            rows, given = ' AND r."seq"=ANY(?)', [list(seqs)]
            places, wanted = " AND (x>>8&16777215)=ANY(?)", [[seq & OWN for seq in seqs]]
        one = [session, *wanted]
        self._driver.run(_REMOVE.format(rows, places), [session, *given, *one, *one, session, *one])
        self._driver.run(_EMPTY, [session])
