-- Kept layer of a shared archive: links to single sessions, for people without a token, until they expire.
CREATE TABLE "share_link" (
    "id" INTEGER PRIMARY KEY,
    "digest" BLOB NOT NULL UNIQUE, -- SHA-256 of the secret part of the address, which is stored nowhere
    "person" INTEGER NOT NULL, -- who made it and owns the session
    "source" INTEGER NOT NULL, -- the source file of the session
    "agent" TEXT NOT NULL,
    "native_id" TEXT NOT NULL,
    "created_at" INTEGER NOT NULL,
    "expires_at" INTEGER NOT NULL,
    "revoked_at" INTEGER NOT NULL -- 0: valid
);
CREATE INDEX "share_link_person" ON "share_link" ("person");
