-- Kept layer: what agent frameworks put into the archive through `everturn.integrations`. Nothing of it can be derived.

-- Checkpoints of graphs. The body is what is left of a checkpoint without the values of its channels.
CREATE TABLE "checkpoint" (
    "thread" TEXT NOT NULL,
    "space" TEXT NOT NULL,
    "id" TEXT NOT NULL,
    "parent" TEXT NOT NULL,
    "run" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "body" BLOB NOT NULL,
    "meta_kind" TEXT NOT NULL,
    "meta" BLOB NOT NULL,
    "at" INTEGER NOT NULL,
    PRIMARY KEY ("thread", "space", "id")
) STRICT, WITHOUT ROWID;
CREATE INDEX "checkpoint_run" ON "checkpoint" ("run") WHERE "run" <> '';
CREATE INDEX "checkpoint_parent" ON "checkpoint" ("thread", "space", "parent");

-- Which value each channel of a checkpoint has. A value is stored once in a thread, however many checkpoints share it.
CREATE TABLE "checkpoint_channel" (
    "thread" TEXT NOT NULL,
    "space" TEXT NOT NULL,
    "checkpoint" TEXT NOT NULL,
    "channel" TEXT NOT NULL,
    "version" TEXT NOT NULL,
    "digest" BLOB NOT NULL,
    PRIMARY KEY ("thread", "space", "checkpoint", "channel")
) STRICT, WITHOUT ROWID;

CREATE TABLE "checkpoint_value" (
    "thread" TEXT NOT NULL,
    "digest" BLOB NOT NULL,
    "kind" TEXT NOT NULL,
    "data" BLOB NOT NULL,
    PRIMARY KEY ("thread", "digest")
) STRICT;

-- What tasks have written since a checkpoint. It may come before the checkpoint does.
CREATE TABLE "checkpoint_write" (
    "thread" TEXT NOT NULL,
    "space" TEXT NOT NULL,
    "checkpoint" TEXT NOT NULL,
    "task" TEXT NOT NULL,
    "idx" INTEGER NOT NULL,
    "path" TEXT NOT NULL,
    "channel" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "data" BLOB NOT NULL,
    PRIMARY KEY ("thread", "space", "checkpoint", "task", "idx")
) STRICT;

-- Lists of things in order: items of a session, entries of a conversation, events of a stream.
CREATE TABLE "item" (
    "family" TEXT NOT NULL,
    "owner" TEXT NOT NULL,
    "n" INTEGER NOT NULL,
    "key" TEXT NOT NULL,
    "data" BLOB NOT NULL,
    "at" INTEGER NOT NULL,
    PRIMARY KEY ("owner", "family", "n")
) STRICT;
CREATE UNIQUE INDEX "item_key" ON "item" ("owner", "family", "key") WHERE "key" <> '';

-- What such a list has one of: its revision, a summary, whose it is.
CREATE TABLE "item_owner" (
    "family" TEXT NOT NULL,
    "owner" TEXT NOT NULL,
    "revision" TEXT NOT NULL,
    "scope" TEXT NOT NULL,
    "data" BLOB NOT NULL,
    "at" INTEGER NOT NULL,
    PRIMARY KEY ("owner", "family")
) STRICT, WITHOUT ROWID;
CREATE INDEX "item_owner_scope" ON "item_owner" ("family", "scope", "at");
