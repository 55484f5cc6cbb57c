-- Vectors start with numbers in which the server finds nothing to compress, so it tried in vain for every long one.
ALTER TABLE "search_row" ALTER COLUMN "tsv" SET STORAGE EXTERNAL;
-- Lists of a segment are found by their words.
DROP INDEX "common_word_segment";
-- Nobody who reads a shared archive for a person may use the lists of common words: they hold everybody's.
DELETE FROM "common_word" WHERE EXISTS (SELECT 1 FROM "setting" WHERE "key" = 'shared' AND "value" <> '');
DELETE FROM "common_segment" WHERE EXISTS (SELECT 1 FROM "setting" WHERE "key" = 'shared' AND "value" <> '');
DELETE FROM "unlisted" WHERE EXISTS (SELECT 1 FROM "setting" WHERE "key" = 'shared' AND "value" <> '');

-- Edits are found by keyed hashes: a connection that reads for a person needs the key, and sees the edits of its person only.
DROP POLICY "visible" ON "setting";
CREATE POLICY "visible" ON "setting" FOR SELECT USING ("key" IN ('redaction_key', 'edit key'));
