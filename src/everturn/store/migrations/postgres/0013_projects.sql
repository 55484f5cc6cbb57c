-- Kept layer of a shared archive: the repository that a pushed file belongs to, as the machine that pushed it found it.
CREATE TABLE "file_project" (
    "source" bigint PRIMARY KEY, -- a source file
    "name" text COLLATE "C" NOT NULL -- such as github.com/example/shop
);
CREATE INDEX "file_project_name" ON "file_project" ("name");
ALTER TABLE "file_project" ENABLE ROW LEVEL SECURITY;
CREATE POLICY "visible" ON "file_project" FOR SELECT USING ("source" IN (SELECT "visible_files"()));
