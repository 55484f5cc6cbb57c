-- Analytics plane: names of tools, order, times, counts, classes of errors; no content. All of it is made from the
-- structure tables, session by session (`everturn.analyse.plane`), and can be dropped and made again.

-- Tokens of a cache write that are kept for an hour have a price of their own.
ALTER TABLE "step" ADD COLUMN "tokens_cache_write_1h" bigint NOT NULL DEFAULT 0;

-- Sessions whose counts are out of date. Kept by the database, so that no writer can forget it.
CREATE TABLE "plane_stale" ("session" bigint PRIMARY KEY);
INSERT INTO "plane_stale" ("session") SELECT "id" FROM "session" WHERE "n_messages" > 0;
CREATE FUNCTION note_stale_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO "plane_stale" ("session") VALUES (NEW."id") ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;
CREATE FUNCTION drop_stale_session() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM "plane_stale" WHERE "session" = OLD."id";
    RETURN NULL;
END
$$;
CREATE TRIGGER "session_counted_anew" AFTER UPDATE OF "kind", "n_messages", "n_inherited", "tokens_in" ON "session"
FOR EACH ROW EXECUTE FUNCTION note_stale_session();
CREATE TRIGGER "session_gone" AFTER DELETE ON "session"
FOR EACH ROW EXECUTE FUNCTION drop_stale_session();

-- One row for each session that was counted. "trail" is what was counted: its calls in columns, packed (docs/analytics.md).
CREATE TABLE "plane_session" (
    "session" bigint PRIMARY KEY REFERENCES "session" ("id"),
    "subagent" bigint NOT NULL,
    "n_calls" bigint NOT NULL,
    "trail" bytea NOT NULL
);

CREATE TABLE "turn_key" (
    "session" bigint NOT NULL REFERENCES "session" ("id"),
    "idx" bigint NOT NULL,
    "turn_id" text COLLATE "C" NOT NULL,
    PRIMARY KEY ("session", "idx")
);
CREATE INDEX "turn_key_id" ON "turn_key" ("turn_id");

CREATE TABLE "call_retry" (
    "session" bigint NOT NULL REFERENCES "session" ("id"),
    "seq" bigint NOT NULL,
    "idx" bigint NOT NULL,
    "of_seq" bigint NOT NULL,
    "of_idx" bigint NOT NULL,
    PRIMARY KEY ("session", "seq", "idx")
);

CREATE TABLE "usage" (
    "session" bigint NOT NULL REFERENCES "session" ("id"),
    "slot" bigint NOT NULL,
    "model" text COLLATE "C" NOT NULL,
    "inherited" bigint NOT NULL,
    "prompt_size" bigint NOT NULL,
    "responses" bigint NOT NULL,
    "tokens_in" bigint NOT NULL,
    "tokens_out" bigint NOT NULL,
    "tokens_cache_read" bigint NOT NULL,
    "tokens_cache_write" bigint NOT NULL,
    "tokens_cache_write_1h" bigint NOT NULL,
    PRIMARY KEY ("session", "slot", "model", "inherited", "prompt_size")
);

CREATE TABLE "activity" (
    "session" bigint NOT NULL REFERENCES "session" ("id"),
    "slot" bigint NOT NULL,
    "turns" bigint NOT NULL,
    "prompts" bigint NOT NULL,
    "calls" bigint NOT NULL,
    "errors" bigint NOT NULL,
    "busy_ms" bigint NOT NULL,
    PRIMARY KEY ("session", "slot")
);

-- Totals: the sum over all rows of "plane_session".
CREATE TABLE "tool_total" (
    "subagent" bigint NOT NULL,
    "tool" text COLLATE "C" NOT NULL,
    "n" bigint NOT NULL,
    "errors" bigint NOT NULL,
    "open" bigint NOT NULL,
    "sessions" bigint NOT NULL,
    "turns" bigint NOT NULL,
    "retries" bigint NOT NULL,
    "parallel" bigint NOT NULL,
    "timed" bigint NOT NULL,
    "duration_ms" bigint NOT NULL,
    "position" bigint NOT NULL,
    PRIMARY KEY ("subagent", "tool")
);

CREATE TABLE "tool_position" (
    "subagent" bigint NOT NULL,
    "tool" text COLLATE "C" NOT NULL,
    "position" bigint NOT NULL,
    "n" bigint NOT NULL,
    "errors" bigint NOT NULL,
    PRIMARY KEY ("subagent", "tool", "position")
);

CREATE TABLE "tool_duration" (
    "subagent" bigint NOT NULL,
    "tool" text COLLATE "C" NOT NULL,
    "bucket" bigint NOT NULL,
    "n" bigint NOT NULL,
    PRIMARY KEY ("subagent", "tool", "bucket")
);

CREATE TABLE "tool_failure" (
    "subagent" bigint NOT NULL,
    "tool" text COLLATE "C" NOT NULL,
    "error_class" text COLLATE "C" NOT NULL,
    "n" bigint NOT NULL,
    "sessions" bigint NOT NULL,
    PRIMARY KEY ("subagent", "tool", "error_class")
);

CREATE TABLE "tool_pair" (
    "subagent" bigint NOT NULL,
    "relation" text COLLATE "C" NOT NULL,
    "first" text COLLATE "C" NOT NULL,
    "second" text COLLATE "C" NOT NULL,
    "n" bigint NOT NULL,
    "errors" bigint NOT NULL,
    "sessions" bigint NOT NULL,
    PRIMARY KEY ("subagent", "relation", "first", "second")
);

CREATE TABLE "tool_path" (
    "subagent" bigint NOT NULL,
    "length" bigint NOT NULL,
    "path" text COLLATE "C" NOT NULL,
    "n" bigint NOT NULL,
    "sessions" bigint NOT NULL,
    "turns" bigint NOT NULL,
    "position" bigint NOT NULL,
    "errors" bigint NOT NULL,
    "r1" bigint NOT NULL,
    "r2" bigint NOT NULL,
    "r3" bigint NOT NULL,
    "r4" bigint NOT NULL,
    "r5" bigint NOT NULL,
    "r6" bigint NOT NULL,
    PRIMARY KEY ("subagent", "length", "path")
);
CREATE INDEX "tool_path_common" ON "tool_path" ("n") WHERE "n" > 1;

CREATE TABLE "turn_length" (
    "subagent" bigint NOT NULL,
    "calls" bigint NOT NULL,
    "n" bigint NOT NULL,
    "errors" bigint NOT NULL,
    PRIMARY KEY ("subagent", "calls")
);

CREATE TABLE "plane_total" (
    "subagent" bigint NOT NULL,
    "what" text COLLATE "C" NOT NULL,
    "n" bigint NOT NULL,
    PRIMARY KEY ("subagent", "what")
);

-- One row for each tool call, each once. Turn columns are NULL until the session is counted.
DROP VIEW "invocations";
CREATE VIEW "invocations" AS
SELECT
    concat_ws('-', c."session", c."seq", c."idx") AS "id",
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
    to_char(to_timestamp(c."started" / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00' AS "timestamp",
    c."duration_ms" AS "duration_ms",
    c."input_size" AS "input_size",
    c."output_size" AS "output_size",
    CASE WHEN r."session" IS NULL THEN NULL ELSE concat_ws('-', r."session", r."of_seq", r."of_idx") END AS "retry_of",
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
    to_char(to_timestamp(t."started" / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00' AS "started_at",
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
    CASE WHEN u."slot" < 0 THEN NULL ELSE to_char(to_timestamp(u."slot" * 900) AT TIME ZONE 'UTC', 'YYYY-MM-DD') END AS "day",
    u."model" AS "model",
    CASE WHEN s."kind" IN ('subagent', 'sidechain') THEN 1 ELSE 0 END AS "is_subagent",
    s."workspace_key" AS "workspace_key",
    SUM(u."responses")::bigint AS "responses",
    SUM(u."tokens_in")::bigint AS "tokens_in",
    SUM(u."tokens_out")::bigint AS "tokens_out",
    SUM(u."tokens_cache_read")::bigint AS "tokens_cache_read",
    SUM(u."tokens_cache_write")::bigint AS "tokens_cache_write",
    SUM(u."tokens_cache_write_1h")::bigint AS "tokens_cache_write_1h"
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
    to_char(to_timestamp(s."started" / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00' AS "started_at",
    to_char(to_timestamp(s."ended" / 1000.0) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00' AS "ended_at",
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
