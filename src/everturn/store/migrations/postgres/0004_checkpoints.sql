-- Kept layer: what agent frameworks put into the archive through `everturn.integrations`. Nothing of it can be derived.

-- Checkpoints of graphs. The body is what is left of a checkpoint without the values of its channels.
CREATE TABLE "checkpoint" (
    "thread" text COLLATE "C" NOT NULL,
    "space" text COLLATE "C" NOT NULL,
    "id" text COLLATE "C" NOT NULL,
    "parent" text COLLATE "C" NOT NULL,
    "run" text COLLATE "C" NOT NULL,
    "kind" text COLLATE "C" NOT NULL,
    "body" bytea NOT NULL,
    "meta_kind" text COLLATE "C" NOT NULL,
    "meta" bytea NOT NULL,
    "at" bigint NOT NULL,
    PRIMARY KEY ("thread", "space", "id")
);
CREATE INDEX "checkpoint_run" ON "checkpoint" ("run") WHERE "run" <> '';
CREATE INDEX "checkpoint_parent" ON "checkpoint" ("thread", "space", "parent");

-- Which value each channel of a checkpoint has. A value is stored once in a thread, however many checkpoints share it.
CREATE TABLE "checkpoint_channel" (
    "thread" text COLLATE "C" NOT NULL,
    "space" text COLLATE "C" NOT NULL,
    "checkpoint" text COLLATE "C" NOT NULL,
    "channel" text COLLATE "C" NOT NULL,
    "version" text COLLATE "C" NOT NULL,
    "digest" bytea NOT NULL,
    PRIMARY KEY ("thread", "space", "checkpoint", "channel")
);

CREATE TABLE "checkpoint_value" (
    "thread" text COLLATE "C" NOT NULL,
    "digest" bytea NOT NULL,
    "kind" text COLLATE "C" NOT NULL,
    "data" bytea NOT NULL,
    PRIMARY KEY ("thread", "digest")
);

-- What tasks have written since a checkpoint. It may come before the checkpoint does.
CREATE TABLE "checkpoint_write" (
    "thread" text COLLATE "C" NOT NULL,
    "space" text COLLATE "C" NOT NULL,
    "checkpoint" text COLLATE "C" NOT NULL,
    "task" text COLLATE "C" NOT NULL,
    "idx" bigint NOT NULL,
    "path" text COLLATE "C" NOT NULL,
    "channel" text COLLATE "C" NOT NULL,
    "kind" text COLLATE "C" NOT NULL,
    "data" bytea NOT NULL,
    PRIMARY KEY ("thread", "space", "checkpoint", "task", "idx")
);

-- Lists of things in order: items of a session, entries of a conversation, events of a stream.
CREATE TABLE "item" (
    "family" text COLLATE "C" NOT NULL,
    "owner" text COLLATE "C" NOT NULL,
    "n" bigint NOT NULL,
    "key" text COLLATE "C" NOT NULL,
    "data" bytea NOT NULL,
    "at" bigint NOT NULL,
    PRIMARY KEY ("owner", "family", "n")
);
CREATE UNIQUE INDEX "item_key" ON "item" ("owner", "family", "key") WHERE "key" <> '';

-- What such a list has one of: its revision, a summary, whose it is.
CREATE TABLE "item_owner" (
    "family" text COLLATE "C" NOT NULL,
    "owner" text COLLATE "C" NOT NULL,
    "revision" text COLLATE "C" NOT NULL,
    "scope" text COLLATE "C" NOT NULL,
    "data" bytea NOT NULL,
    "at" bigint NOT NULL,
    PRIMARY KEY ("owner", "family")
);
CREATE INDEX "item_owner_scope" ON "item_owner" ("family", "scope", "at");

-- The planner's samples must not hold words of people: `forget` would not reach them.
ALTER TABLE "checkpoint" ALTER "body" SET STATISTICS 0, ALTER "meta" SET STATISTICS 0;
ALTER TABLE "checkpoint_value" ALTER "data" SET STATISTICS 0;
ALTER TABLE "checkpoint_write" ALTER "data" SET STATISTICS 0;
ALTER TABLE "item" ALTER "data" SET STATISTICS 0;
ALTER TABLE "item_owner" ALTER "data" SET STATISTICS 0;
