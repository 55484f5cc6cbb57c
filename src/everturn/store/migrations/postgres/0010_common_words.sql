-- The best entries of common words, so that a search need not read every row that holds one. Each segment covers about a
-- thousand entries of one space and lists words that are common in it; rarer words are found by the index of "search_row".
CREATE SEQUENCE "common_segment_number";
CREATE TABLE "common_segment" (
    "seg" bigint PRIMARY KEY,
    "space" integer NOT NULL, -- who may see its entries; 0 in an archive of one person
    "entries" integer NOT NULL,
    "first_session" bigint NOT NULL,
    "last_session" bigint NOT NULL
);
CREATE TABLE "common_word" (
    "space" integer NOT NULL,
    "term" text COLLATE "C" NOT NULL,
    "seg" bigint NOT NULL,
    "n" integer NOT NULL, -- entries of the segment with the word
    "best" bigint[] NOT NULL, -- session << 32 | seq << 8 | 255 * share, best first; seq 0xffffff is the session's own entry
    PRIMARY KEY ("space", "term", "seg")
);
-- Entries that no segment covers yet: a search reads their rows.
CREATE TABLE "unlisted" (
    "space" integer NOT NULL,
    "session" bigint NOT NULL,
    "first_seq" bigint NOT NULL,
    "last_seq" bigint NOT NULL,
    "entries" integer NOT NULL
);
CREATE INDEX "common_word_segment" ON "common_word" ("seg");
-- The planner's samples must not hold words of people: `forget` would not reach them.
ALTER TABLE "common_word" ALTER "term" SET STATISTICS 0, ALTER "best" SET STATISTICS 0;

-- Rows from before stems are derived again by the next sync; until then they cannot be found.
DELETE FROM "search_row" WHERE "size" = 0;
DELETE FROM "setting" WHERE "key" = 'old index';
DROP INDEX "search_row_old";
-- A short list of new rows to search one by one: a search right after a large ingest stays fast.
ALTER INDEX "search_row_tsv" SET (gin_pending_list_limit = 512);

-- What is there already: 16 sessions a segment.
INSERT INTO "common_segment" ("seg", "space", "entries", "first_session", "last_session")
SELECT -1 - "session" / 16, 0, COUNT(DISTINCT ("session", "seq")), MIN("session"), MAX("session") FROM "search_row" GROUP BY 1;
INSERT INTO "common_word" ("space", "term", "seg", "n", "best")
SELECT 0, "term", "seg", COUNT(*), (ARRAY_AGG("place" ORDER BY "place" & 255 DESC, "place" DESC))[1:64] FROM (
    SELECT
        -1 - h."session" / 16 AS "seg", h."lexeme" AS "term",
        (h."session" << 32) | ((h."seq" & 16777215) << 8)
        | LEAST(255, FLOOR(255 * h."seen" / (h."seen" + 1.6 * (0.4 + 0.6 * e."size" / 80.0))))::bigint AS "place"
    FROM (
        SELECT
            r."session", r."seq", u."lexeme",
            SUM((ARRAY[2.4, 2.0, 1.2, 1.2, 0.8, 3.0, 0.5]::float8[])[r."field" + 1] * CARDINALITY(u."positions")) AS "seen"
        FROM "search_row" r, UNNEST(r."tsv") u GROUP BY r."session", r."seq", u."lexeme"
    ) h
    JOIN (SELECT "session", "seq", SUM("size")::float8 AS "size" FROM "search_row" GROUP BY "session", "seq") e
        ON e."session" = h."session" AND e."seq" = h."seq"
) s
GROUP BY "term", "seg" HAVING COUNT(*) >= 8;
