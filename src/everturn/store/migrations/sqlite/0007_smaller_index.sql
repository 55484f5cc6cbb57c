-- The index numbers its entries in short and has the largest column first: a fifth less to store. What is in the old one
-- stays findable there until its version is derived again, which the next sync does for every version that has parser 0.
ALTER TABLE "fts" RENAME TO "fts_wide";
CREATE VIRTUAL TABLE "fts" USING fts5 (
    tool_output, tool_input, meta, answer, thinking, prompt, summary,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 0'
);
INSERT INTO "fts" ("fts", "rank") VALUES ('hashsize', 16777216);
INSERT INTO "setting" ("key", "value") VALUES ('old index', 'fts_wide')
ON CONFLICT ("key") DO UPDATE SET "value" = "value" || ' fts_wide';
UPDATE "version" SET "parser" = 0 WHERE "parser" > 0;
DELETE FROM "setting" WHERE "key" = 'parsers';
