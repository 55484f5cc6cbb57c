-- Searches read less: of a word the best entries only, words that match by prefix in one range, and for a person the rules of visibility
-- are checked for what was found, not listed for everything.

-- The person that a connection reads for, unless the access has ended, and the person's projects.
CREATE FUNCTION "reader_name"() RETURNS text LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT p."name" FROM "person" p WHERE p."name" = current_setting('everturn.person', true) AND p."ended_at" = 0
$$;
CREATE FUNCTION "reader_projects"() RETURNS bigint[] LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT COALESCE(ARRAY_AGG(m."project"), '{}') FROM "project_member" m JOIN "person" p ON p."id" = m."person"
    WHERE p."name" = current_setting('everturn.person', true) AND p."ended_at" = 0
$$;

-- Of a table read by key the server checks each row, of one read as a whole it lists what is visible first: EXISTS leaves it the choice.
CREATE POLICY "visible" ON "file_share" FOR SELECT USING ("project" = ANY((SELECT "reader_projects"())::bigint[]));
DROP POLICY "visible" ON "source_file";
CREATE POLICY "visible" ON "source_file" FOR SELECT USING (
    "owner" = (SELECT "reader_name"()) OR EXISTS (SELECT 1 FROM "file_share" x WHERE x."source" = "source_file"."id")
);
DROP POLICY "visible" ON "version";
CREATE POLICY "visible" ON "version" FOR SELECT USING (EXISTS (SELECT 1 FROM "source_file" x WHERE x."id" = "version"."source"));
DROP POLICY "visible" ON "file_project";
CREATE POLICY "visible" ON "file_project" FOR SELECT USING (EXISTS (SELECT 1 FROM "source_file" x WHERE x."id" = "file_project"."source"));
DROP POLICY "visible" ON "session";
CREATE POLICY "visible" ON "session" FOR SELECT USING (EXISTS (SELECT 1 FROM "version" x WHERE x."id" = "session"."version"));
DROP POLICY "visible" ON "chunk";
CREATE POLICY "visible" ON "chunk" FOR SELECT USING (EXISTS (SELECT 1 FROM "version" x WHERE x."id" = "chunk"."version"));
DROP POLICY "visible" ON "problem";
CREATE POLICY "visible" ON "problem" FOR SELECT USING (EXISTS (SELECT 1 FROM "version" x WHERE x."id" = "problem"."version"));
DROP POLICY "visible" ON "census";
CREATE POLICY "visible" ON "census" FOR SELECT USING (EXISTS (SELECT 1 FROM "version" x WHERE x."id" = "census"."version"));
DROP POLICY "visible" ON "session_text";
CREATE POLICY "visible" ON "session_text" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "session_text"."session"));
DROP POLICY "visible" ON "turn";
CREATE POLICY "visible" ON "turn" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "turn"."session"));
DROP POLICY "visible" ON "step";
CREATE POLICY "visible" ON "step" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "step"."session"));
DROP POLICY "visible" ON "call";
CREATE POLICY "visible" ON "call" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "call"."session"));
DROP POLICY "visible" ON "message";
CREATE POLICY "visible" ON "message" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "message"."session"));
DROP POLICY "visible" ON "artifact";
CREATE POLICY "visible" ON "artifact" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "artifact"."session"));
DROP POLICY "visible" ON "edit";
CREATE POLICY "visible" ON "edit" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "edit"."session"));
DROP POLICY "visible" ON "link";
CREATE POLICY "visible" ON "link" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "link"."session"));
DROP POLICY "visible" ON "message_text";
CREATE POLICY "visible" ON "message_text" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "message_text"."session"));
DROP POLICY "visible" ON "reported";
CREATE POLICY "visible" ON "reported" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "reported"."session"));
DROP POLICY "visible" ON "entry_text";
CREATE POLICY "visible" ON "entry_text" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "entry_text"."session"));
DROP POLICY "visible" ON "unlisted_entry";
CREATE POLICY "visible" ON "unlisted_entry" FOR SELECT USING (EXISTS (SELECT 1 FROM "session" x WHERE x."id" = "unlisted_entry"."session"));

-- What a connection that reads for a person may find, with the messages of each session.
CREATE FUNCTION "visible_sessions"() RETURNS TABLE ("id" bigint, "messages" bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = on SET jit = off AS $$
    SELECT s."id", CASE s."mode" WHEN 'structure' THEN 0 ELSE s."n_messages" - s."n_inherited" END
    FROM "session" s JOIN "version" v ON v."id" = s."version" JOIN "source_file" f ON f."id" = v."source"
    WHERE f."owner" = (SELECT "reader_name"())
    OR EXISTS (SELECT 1 FROM "file_share" x WHERE x."source" = f."id" AND x."project" = ANY((SELECT "reader_projects"())::bigint[]))
$$;
REVOKE ALL ON FUNCTION "visible_sessions"() FROM PUBLIC;

-- The best entries with each word, about "budget" of them, or all; for a word with an end, those with any of the "opened" first terms
-- from the word up to that end. Every segment gives its share of the budget. "key" is session << 24 | seq, "n" the number of places of
-- the word in all segments. With a setting of its own it stays a function, and searches are planned for its rows, whatever the statistics say.
CREATE OR REPLACE FUNCTION "read_lists"("words" text[], "word_ends" text[], "budget" bigint, "opened" bigint)
RETURNS TABLE ("o" bigint, "key" bigint, "share" integer, "n" bigint)
LANGUAGE sql STABLE ROWS 20000 SET jit = off AS $$
    WITH s AS MATERIALIZED (SELECT g."seg", g."pages" || '{}'::bigint[] AS "pages" FROM "word_segment" g),
    w AS MATERIALIZED (SELECT * FROM UNNEST($1, $2) WITH ORDINALITY AS x("term", "beyond", "o")),
    l AS MATERIALIZED (
        SELECT
            w."o", w."term", s."seg", b."ends"[i."i"] - COALESCE(b."ends"[i."i" - 1], 0) AS "n",
            b."places"[COALESCE(b."ends"[i."i" - 1], 0) + 1:b."ends"[i."i"]] AS "places"
        FROM (SELECT * FROM w WHERE w."beyond" IS NULL) w CROSS JOIN s CROSS JOIN LATERAL (
            SELECT k."terms", k."ends", k."places" FROM "word_list" k WHERE k."seg" = s."seg" AND k."first" <= w."term"
            ORDER BY k."first" DESC LIMIT 1
        ) b CROSS JOIN LATERAL (SELECT ARRAY_POSITION(STRING_TO_ARRAY(b."terms", E'\n'), w."term") AS "i" OFFSET 0) i
        WHERE i."i" IS NOT NULL
        UNION ALL
        SELECT p."o", p."term", p."seg", p."n", p."places" FROM (
            SELECT
                w."o", y."term", s."seg", b."ends"[y."i"] - COALESCE(b."ends"[y."i" - 1], 0) AS "n",
                b."places"[COALESCE(b."ends"[y."i" - 1], 0) + 1:b."ends"[y."i"]] AS "places",
                DENSE_RANK() OVER (PARTITION BY w."o" ORDER BY y."term" COLLATE "C") AS "rank"
            FROM (SELECT * FROM w WHERE w."beyond" IS NOT NULL) w CROSS JOIN s CROSS JOIN LATERAL (
                SELECT l."terms", l."ends" || '{}'::integer[] AS "ends", l."places" || '{}'::integer[] AS "places"
                FROM "word_list" l WHERE l."seg" = s."seg" AND l."first" < w."beyond" AND l."first" >= COALESCE(
                    (SELECT k."first" FROM "word_list" k WHERE k."seg" = s."seg" AND k."first" <= w."term" ORDER BY k."first" DESC LIMIT 1), '')
                ORDER BY l."first" LIMIT $4 + 1
            ) b CROSS JOIN LATERAL UNNEST(STRING_TO_ARRAY(b."terms", E'\n')) WITH ORDINALITY AS y("term", "i")
            WHERE y."term" COLLATE "C" >= w."term" AND y."term" COLLATE "C" < w."beyond"
        ) p WHERE p."rank" <= $4
    ),
    c AS MATERIALIZED (SELECT l."o", SUM(l."n")::bigint AS "n" FROM l GROUP BY l."o"),
    d AS MATERIALIZED ( -- 2147483647: all
        SELECT l."o", l."term", l."seg", l."places", l."n" AS "of_list", c."n",
            CASE WHEN c."n" <= $3 OR l."n" <= 16 THEN 2147483647 ELSE $3 * l."n" / c."n" + 16 END::integer AS "wanted"
        FROM l JOIN c ON c."o" = l."o"
    )
    SELECT x."o", (x."pages"[((x."place" & 8388607) >> 6) + 1] << 6) | (x."place" & 63), x."place" >> 23, x."n" FROM (
        SELECT d."o", d."n", s."pages", UNNEST(d."places"[:d."wanted"]) AS "place" FROM d JOIN s ON s."seg" = d."seg"
        UNION ALL
        SELECT d."o", d."n", s."pages", UNNEST(r."places"[:d."wanted" - 256 * ((2 << r."block") - 1)]) FROM d JOIN s ON s."seg" = d."seg" JOIN "word_list_rest" r
            ON r."seg" = d."seg" AND r."term" = d."term" AND 256 * ((2 << r."block") - 1) < d."wanted"
        WHERE CARDINALITY(d."places") < LEAST(d."of_list", d."wanted")
    ) x
$$;
-- The same for a connection that reads for a person: entries of visible sessions only. "n" is 1, or -1 if there may be more entries. A
-- first row without a word has the number of visible messages.
-- A budget below a thousand counts as a thousand: whoever asks for one entry, two, three … cannot count everybody's entries of a rare word.
CREATE OR REPLACE FUNCTION "read_visible_lists"("words" text[], "word_ends" text[], "budget" bigint, "opened" bigint)
RETURNS TABLE ("o" bigint, "key" bigint, "share" integer, "n" bigint)
LANGUAGE sql STABLE ROWS 20000 SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off SET enable_mergejoin = off AS $$
    WITH v AS MATERIALIZED (SELECT x."id", x."messages" FROM "visible_sessions"() x)
    SELECT 0::bigint, NULL::bigint, NULL::integer, COALESCE(SUM(v."messages"), 0)::bigint FROM v
    UNION ALL
    SELECT x."o", x."key", x."share", CASE WHEN x."n" > GREATEST($3, 1000) THEN -1 ELSE 1 END::bigint
    FROM "read_lists"($1, $2, GREATEST($3, 1000), $4) x WHERE x."key" >> 24 IN (SELECT v."id" FROM v)
$$;
-- The stems of entries of visible sessions. Each session is checked once.
CREATE FUNCTION "read_visible_stems"("keys" bigint[]) RETURNS TABLE ("session" bigint, "seq" integer, "stems" bytea)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off SET enable_mergejoin = off AS $$
    WITH k AS MATERIALIZED (SELECT x."key", x."key" >> 24 AS "session" FROM UNNEST($1) AS x("key")),
    v AS MATERIALIZED (
        SELECT d."session" FROM (SELECT DISTINCT k."session" FROM k) d CROSS JOIN LATERAL (
            SELECT 1 FROM "session" s JOIN "version" v ON v."id" = s."version" JOIN "source_file" f ON f."id" = v."source"
            WHERE s."id" = d."session" AND (f."owner" = (SELECT "reader_name"()) OR EXISTS (
                SELECT 1 FROM "file_share" x WHERE x."source" = f."id" AND x."project" = ANY((SELECT "reader_projects"())::bigint[])))
            OFFSET 0
        ) y
    )
    SELECT r."session", r."seq", r."stems" FROM k CROSS JOIN LATERAL (
        SELECT e."session", e."seq", e."stems" FROM "entry_text" e
        WHERE e."session" = k."session" AND e."seq" = CASE k."key" & 16777215 WHEN 16777215 THEN -1 ELSE (k."key" & 16777215)::integer END OFFSET 0
    ) r WHERE k."session" IN (SELECT v."session" FROM v)
$$;
REVOKE ALL ON FUNCTION "read_visible_stems"(bigint[]) FROM PUBLIC;
