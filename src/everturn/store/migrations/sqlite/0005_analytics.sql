-- Analytics plane: names of tools, order, times, counts, classes of errors; no content. All of it is made from the
-- structure tables, session by session (`everturn.analyse.plane`), and can be dropped and made again.

-- Tokens of a cache write that are kept for an hour have a price of their own.
ALTER TABLE "step" ADD COLUMN "tokens_cache_write_1h" INTEGER NOT NULL DEFAULT 0;

-- Sessions whose counts are out of date. Kept by the database, so that no writer can forget it.
CREATE TABLE "plane_stale" ("session" INTEGER PRIMARY KEY) STRICT;
INSERT INTO "plane_stale" ("session") SELECT "id" FROM "session" WHERE "n_messages" > 0;
CREATE TRIGGER "session_counted_anew" AFTER UPDATE OF "kind", "n_messages", "n_inherited", "tokens_in" ON "session"
BEGIN
    INSERT OR IGNORE INTO "plane_stale" ("session") VALUES (NEW."id");
END;
CREATE TRIGGER "session_gone" AFTER DELETE ON "session"
BEGIN
    DELETE FROM "plane_stale" WHERE "session" = OLD."id";
END;

-- One row for each session that was counted. "trail" is what was counted: its calls in columns, packed (docs/analytics.md).
CREATE TABLE "plane_session" (
    "session" INTEGER PRIMARY KEY REFERENCES "session" ("id"),
    "subagent" INTEGER NOT NULL,
    "n_calls" INTEGER NOT NULL,
    "trail" BLOB NOT NULL
) STRICT;

CREATE TABLE "turn_key" (
    "session" INTEGER NOT NULL REFERENCES "session" ("id"),
    "idx" INTEGER NOT NULL,
    "turn_id" TEXT NOT NULL,
    PRIMARY KEY ("session", "idx")
) STRICT, WITHOUT ROWID;
CREATE INDEX "turn_key_id" ON "turn_key" ("turn_id");

CREATE TABLE "call_retry" (
    "session" INTEGER NOT NULL REFERENCES "session" ("id"),
    "seq" INTEGER NOT NULL,
    "idx" INTEGER NOT NULL,
    "of_seq" INTEGER NOT NULL,
    "of_idx" INTEGER NOT NULL,
    PRIMARY KEY ("session", "seq", "idx")
) STRICT, WITHOUT ROWID;

CREATE TABLE "usage" (
    "session" INTEGER NOT NULL REFERENCES "session" ("id"),
    "slot" INTEGER NOT NULL,
    "model" TEXT NOT NULL,
    "inherited" INTEGER NOT NULL,
    "prompt_size" INTEGER NOT NULL,
    "responses" INTEGER NOT NULL,
    "tokens_in" INTEGER NOT NULL,
    "tokens_out" INTEGER NOT NULL,
    "tokens_cache_read" INTEGER NOT NULL,
    "tokens_cache_write" INTEGER NOT NULL,
    "tokens_cache_write_1h" INTEGER NOT NULL,
    PRIMARY KEY ("session", "slot", "model", "inherited", "prompt_size")
) STRICT, WITHOUT ROWID;

CREATE TABLE "activity" (
    "session" INTEGER NOT NULL REFERENCES "session" ("id"),
    "slot" INTEGER NOT NULL,
    "turns" INTEGER NOT NULL,
    "prompts" INTEGER NOT NULL,
    "calls" INTEGER NOT NULL,
    "errors" INTEGER NOT NULL,
    "busy_ms" INTEGER NOT NULL,
    PRIMARY KEY ("session", "slot")
) STRICT, WITHOUT ROWID;

-- Totals: the sum over all rows of "plane_session".
CREATE TABLE "tool_total" (
    "subagent" INTEGER NOT NULL,
    "tool" TEXT NOT NULL,
    "n" INTEGER NOT NULL,
    "errors" INTEGER NOT NULL,
    "open" INTEGER NOT NULL,
    "sessions" INTEGER NOT NULL,
    "turns" INTEGER NOT NULL,
    "retries" INTEGER NOT NULL,
    "parallel" INTEGER NOT NULL,
    "timed" INTEGER NOT NULL,
    "duration_ms" INTEGER NOT NULL,
    "position" INTEGER NOT NULL,
    PRIMARY KEY ("subagent", "tool")
) STRICT, WITHOUT ROWID;

CREATE TABLE "tool_position" (
    "subagent" INTEGER NOT NULL,
    "tool" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "n" INTEGER NOT NULL,
    "errors" INTEGER NOT NULL,
    PRIMARY KEY ("subagent", "tool", "position")
) STRICT, WITHOUT ROWID;

CREATE TABLE "tool_duration" (
    "subagent" INTEGER NOT NULL,
    "tool" TEXT NOT NULL,
    "bucket" INTEGER NOT NULL,
    "n" INTEGER NOT NULL,
    PRIMARY KEY ("subagent", "tool", "bucket")
) STRICT, WITHOUT ROWID;

CREATE TABLE "tool_failure" (
    "subagent" INTEGER NOT NULL,
    "tool" TEXT NOT NULL,
    "error_class" TEXT NOT NULL,
    "n" INTEGER NOT NULL,
    "sessions" INTEGER NOT NULL,
    PRIMARY KEY ("subagent", "tool", "error_class")
) STRICT, WITHOUT ROWID;

CREATE TABLE "tool_pair" (
    "subagent" INTEGER NOT NULL,
    "relation" TEXT NOT NULL,
    "first" TEXT NOT NULL,
    "second" TEXT NOT NULL,
    "n" INTEGER NOT NULL,
    "errors" INTEGER NOT NULL,
    "sessions" INTEGER NOT NULL,
    PRIMARY KEY ("subagent", "relation", "first", "second")
) STRICT, WITHOUT ROWID;

CREATE TABLE "tool_path" (
    "subagent" INTEGER NOT NULL,
    "length" INTEGER NOT NULL,
    "path" TEXT NOT NULL,
    "n" INTEGER NOT NULL,
    "sessions" INTEGER NOT NULL,
    "turns" INTEGER NOT NULL,
    "position" INTEGER NOT NULL,
    "errors" INTEGER NOT NULL,
    "r1" INTEGER NOT NULL,
    "r2" INTEGER NOT NULL,
    "r3" INTEGER NOT NULL,
    "r4" INTEGER NOT NULL,
    "r5" INTEGER NOT NULL,
    "r6" INTEGER NOT NULL,
    PRIMARY KEY ("subagent", "length", "path")
) STRICT, WITHOUT ROWID;
CREATE INDEX "tool_path_common" ON "tool_path" ("n") WHERE "n" > 1;

CREATE TABLE "turn_length" (
    "subagent" INTEGER NOT NULL,
    "calls" INTEGER NOT NULL,
    "n" INTEGER NOT NULL,
    "errors" INTEGER NOT NULL,
    PRIMARY KEY ("subagent", "calls")
) STRICT, WITHOUT ROWID;

CREATE TABLE "plane_total" (
    "subagent" INTEGER NOT NULL,
    "what" TEXT NOT NULL,
    "n" INTEGER NOT NULL,
    PRIMARY KEY ("subagent", "what")
) STRICT, WITHOUT ROWID;

-- One row for each tool call, each once. Turn columns are NULL until the session is counted.
DROP VIEW "invocations";
CREATE VIEW "invocations" AS
SELECT
    printf('%d-%d-%d', c."session", c."seq", c."idx") AS "id",
    s."agent" AS "source",
    s."native_id" AS "session_id",
    c."call_id" AS "tool_use_id",
    c."name" AS "tool_name",
    k."turn_id" AS "turn_id",
    CASE WHEN k."turn_id" IS NULL THEN NULL ELSE c."position" END AS "turn_sequence",
    CASE WHEN k."turn_id" IS NULL THEN NULL WHEN COALESCE(p."n_calls", 1) = 1 THEN 0 ELSE c."batch" + 1 END AS "parallel_group",
    c."turn" AS "turn_index",
    c."batch" AS "parallel_index",
    COALESCE(p."n_calls", 1) AS "batch_size",
    CASE c."status" WHEN 'error' THEN 1 ELSE 0 END AS "is_error",
    c."status" AS "status",
    c."error_class" AS "error_class",
    c."exit_status" AS "exit_status",
    c."kind" AS "kind",
    strftime('%Y-%m-%dT%H:%M:%S', c."started" / 1000, 'unixepoch') || printf('.%03d+00:00', c."started" % 1000) AS "timestamp",
    c."duration_ms" AS "duration_ms",
    c."input_size" AS "input_size",
    c."output_size" AS "output_size",
    CASE WHEN r."session" IS NULL THEN NULL ELSE printf('%d-%d-%d', r."session", r."of_seq", r."of_idx") END AS "retry_of",
    CASE WHEN s."kind" IN ('subagent', 'sidechain') THEN 1 ELSE 0 END AS "is_subagent",
    NULLIF(s."parent", '') AS "parent_session_id",
    s."workspace_key" AS "workspace_key",
    p."model" AS "model"
FROM "call" c
JOIN "session" s ON s."id" = c."session"
LEFT JOIN "step" p ON p."session" = c."session" AND p."idx" = c."step"
LEFT JOIN "turn_key" k ON k."session" = c."session" AND k."idx" = c."turn"
LEFT JOIN "call_retry" r ON r."session" = c."session" AND r."seq" = c."seq" AND r."idx" = c."idx"
WHERE c."inherited" = 0 AND c."status" <> 'orphan';

-- One row for each turn, each once.
CREATE VIEW "turns" AS
SELECT
    k."turn_id" AS "id",
    s."agent" AS "source",
    s."native_id" AS "session_id",
    t."idx" AS "turn_index",
    strftime('%Y-%m-%dT%H:%M:%S', t."started" / 1000, 'unixepoch') || printf('.%03d+00:00', t."started" % 1000) AS "started_at",
    COALESCE(t."reported_ms", t."ended" - t."started") AS "duration_ms",
    t."n_calls" AS "tool_count",
    t."n_errors" AS "error_count",
    t."compacted" AS "was_compacted",
    t."interrupted" AS "was_interrupted",
    t."starter" AS "starter",
    t."n_steps" AS "step_count",
    t."n_batches" AS "batch_count",
    CASE WHEN s."kind" IN ('subagent', 'sidechain') THEN 1 ELSE 0 END AS "is_subagent",
    s."workspace_key" AS "workspace_key"
FROM "turn" t
JOIN "session" s ON s."id" = t."session"
LEFT JOIN "turn_key" k ON k."session" = t."session" AND k."idx" = t."idx"
WHERE t."inherited" = 0 AND s."kind" IN ('main', 'subagent', 'sidechain');

-- Tokens by session, day (UTC) and model: each response once.
CREATE VIEW "daily_usage" AS
SELECT
    s."agent" AS "source",
    s."native_id" AS "session_id",
    CASE WHEN u."slot" < 0 THEN NULL ELSE date(u."slot" * 900, 'unixepoch') END AS "day",
    u."model" AS "model",
    CASE WHEN s."kind" IN ('subagent', 'sidechain') THEN 1 ELSE 0 END AS "is_subagent",
    s."workspace_key" AS "workspace_key",
    SUM(u."responses") AS "responses",
    SUM(u."tokens_in") AS "tokens_in",
    SUM(u."tokens_out") AS "tokens_out",
    SUM(u."tokens_cache_read") AS "tokens_cache_read",
    SUM(u."tokens_cache_write") AS "tokens_cache_write",
    SUM(u."tokens_cache_write_1h") AS "tokens_cache_write_1h"
FROM "usage" u
JOIN "session" s ON s."id" = u."session"
WHERE u."inherited" = 0
GROUP BY 1, 2, 3, 4, 5, 6;

-- One row for each session with its counts; its title and its workspace are content and not here.
CREATE VIEW "sessions" AS
SELECT
    s."agent" AS "source",
    s."native_id" AS "session_id",
    s."kind" AS "kind",
    NULLIF(s."parent", '') AS "parent_session_id",
    s."state" AS "state",
    s."mode" AS "mode",
    s."client" AS "client",
    s."model" AS "model",
    s."workspace_key" AS "workspace_key",
    strftime('%Y-%m-%dT%H:%M:%S', s."started" / 1000, 'unixepoch') || printf('.%03d+00:00', s."started" % 1000) AS "started_at",
    strftime('%Y-%m-%dT%H:%M:%S', s."ended" / 1000, 'unixepoch') || printf('.%03d+00:00', s."ended" % 1000) AS "ended_at",
    s."n_messages" AS "messages",
    s."n_inherited" AS "inherited_messages",
    s."n_turns" AS "turns",
    s."n_steps" AS "steps",
    s."n_calls" AS "calls",
    s."n_errors" AS "errors",
    s."n_prompts" AS "prompts",
    s."tokens_in" AS "tokens_in",
    s."tokens_out" AS "tokens_out",
    s."tokens_cache_read" AS "tokens_cache_read",
    s."tokens_cache_write" AS "tokens_cache_write"
FROM "session" s
WHERE s."n_messages" > 0;
