-- Kept layer of a shared archive: the repository that a pushed file belongs to, as the machine that pushed it found it.
CREATE TABLE "file_project" (
    "source" INTEGER PRIMARY KEY, -- a source file
    "name" TEXT NOT NULL -- such as github.com/example/shop
);
CREATE INDEX "file_project_name" ON "file_project" ("name");
