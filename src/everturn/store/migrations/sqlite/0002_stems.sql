-- The index holds stems, and the pieces of compound names. What is in the old one stays findable there until its
-- version is derived again, which the next sync does for every version that has parser 0.
ALTER TABLE "fts" RENAME TO "fts_old";
CREATE VIRTUAL TABLE "fts" USING fts5 (
    prompt, answer, thinking, tool_input, tool_output, summary, meta,
    content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 0'
);
INSERT INTO "fts" ("fts", "rank") VALUES ('hashsize', 16777216);
INSERT INTO "setting" ("key", "value") VALUES ('old index', 'fts_old');
UPDATE "version" SET "parser" = 0 WHERE "parser" > 0;
DELETE FROM "setting" WHERE "key" = 'parsers';

-- Messages that hold the result of a certain tool.
CREATE INDEX "call_result" ON "call" ("session", "result_seq");
