-- Kept layer of a shared archive: people, projects, tokens, what is shared with whom, and who did what (docs/team.md).
CREATE TABLE "person" (
    "id" INTEGER PRIMARY KEY,
    "name" TEXT NOT NULL UNIQUE, -- the owner of the files that this person pushes
    "role" TEXT NOT NULL, -- member | reader
    "created_at" INTEGER NOT NULL,
    "ended_at" INTEGER NOT NULL -- 0: has access
);
CREATE TABLE "project" (
    "id" INTEGER PRIMARY KEY,
    "name" TEXT NOT NULL UNIQUE, -- what identifies the repository, such as github.com/example/shop
    "shares" INTEGER NOT NULL, -- 1: what members push is shared with the project
    "created_at" INTEGER NOT NULL
);
CREATE TABLE "project_member" (
    "project" INTEGER NOT NULL,
    "person" INTEGER NOT NULL,
    PRIMARY KEY ("project", "person")
) WITHOUT ROWID;
CREATE TABLE "file_share" (
    "source" INTEGER PRIMARY KEY, -- a source file; without a row only its owner sees it
    "project" INTEGER NOT NULL
);
CREATE TABLE "token" (
    "id" INTEGER PRIMARY KEY,
    "digest" BLOB NOT NULL UNIQUE, -- SHA-256 of the token, which is stored nowhere
    "person" INTEGER NOT NULL,
    "scope" TEXT NOT NULL, -- words of: read push
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "revoked_at" INTEGER NOT NULL -- 0: valid
);
CREATE TABLE "audit" (
    "id" INTEGER PRIMARY KEY,
    "at" INTEGER NOT NULL,
    "person" INTEGER NOT NULL,
    "token" INTEGER NOT NULL,
    "action" TEXT NOT NULL,
    "subject" TEXT NOT NULL -- a session or file, never its content; of a search nothing
);
CREATE INDEX "audit_at" ON "audit" ("at");
