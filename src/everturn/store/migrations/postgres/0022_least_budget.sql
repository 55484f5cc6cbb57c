-- Whoever reads for a person may not count everybody's entries of a word by asking for one entry, two, three …: a budget below
-- a thousand counts as a thousand, for what is read and for whether there may be more.
CREATE OR REPLACE FUNCTION "read_visible_lists"("words" text[], "word_ends" text[], "budget" bigint, "opened" bigint)
RETURNS TABLE ("o" bigint, "key" bigint, "share" integer, "n" bigint)
LANGUAGE sql STABLE ROWS 20000 SECURITY DEFINER SET search_path FROM CURRENT SET enable_seqscan = off SET enable_mergejoin = off AS $$
    WITH v AS MATERIALIZED (SELECT x."id", x."messages" FROM "visible_sessions"() x)
    SELECT 0::bigint, NULL::bigint, NULL::integer, COALESCE(SUM(v."messages"), 0)::bigint FROM v
    UNION ALL
    SELECT x."o", x."key", x."share", CASE WHEN x."n" > GREATEST($3, 1000) THEN -1 ELSE 1 END::bigint
    FROM "read_lists"($1, $2, GREATEST($3, 1000), $4) x WHERE x."key" >> 24 IN (SELECT v."id" FROM v)
$$;
