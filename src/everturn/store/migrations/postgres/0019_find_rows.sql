-- Row-level security is applied before any condition whose operator could leak, and `@@` counts as such: a connection that reads for
-- a person could not use the index of words, and read every row instead. This function uses it, and gives out rows of visible sessions only.
CREATE FUNCTION "find_rows"("wanted" tsquery, "most" bigint)
RETURNS TABLE ("session" bigint, "seq" bigint, "field" smallint, "size" integer)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT AS $$
    SELECT r."session", r."seq", r."field", r."size" FROM "search_row" r
    WHERE r."tsv" @@ $1 AND r."session" IN (
        SELECT s."id" FROM "session" s JOIN "version" v ON v."id" = s."version" WHERE v."source" IN (SELECT "visible_files"())
    )
    LIMIT $2
$$;
REVOKE ALL ON FUNCTION "find_rows"(tsquery, bigint) FROM PUBLIC;
