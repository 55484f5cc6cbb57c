-- The index holds stems, and the pieces of compound names. Rows with size 0 are from before: they stay findable by their
-- unstemmed terms until their version is derived again, which the next sync does for every version that has parser 0.
ALTER TABLE "search_row" ADD COLUMN "size" integer NOT NULL DEFAULT 0; -- terms in it
ALTER TABLE "search_row" ALTER "size" DROP DEFAULT;
CREATE INDEX "search_row_old" ON "search_row" ("session") WHERE "size" = 0;
INSERT INTO "setting" ("key", "value") SELECT 'old index', 'size 0' WHERE EXISTS (SELECT 1 FROM "search_row");
UPDATE "version" SET "parser" = 0 WHERE "parser" > 0;
DELETE FROM "setting" WHERE "key" = 'parsers';

-- Messages that hold the result of a certain tool.
CREATE INDEX "call_result" ON "call" ("session", "result_seq");
