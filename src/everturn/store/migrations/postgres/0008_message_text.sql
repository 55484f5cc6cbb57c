-- The words of conversations that everturn itself holds, as rows: programs that ask in SQL can read and filter them (decision 15).
-- Derived from the raw layer like every other row, and erased with it. Sessions of other programs have no rows here.
CREATE TABLE "message_text" (
    "session" bigint NOT NULL,
    "seq" bigint NOT NULL,
    "role" text COLLATE "C" NOT NULL,
    "content" text COLLATE "C",
    "tool_calls" text COLLATE "C",
    "tool_call_id" text COLLATE "C",
    "tool_name" text COLLATE "C",
    "tokens" bigint NOT NULL,
    PRIMARY KEY ("session", "seq")
);
CREATE INDEX "message_text_role" ON "message_text" ("session", "role");
CREATE INDEX "message_text_tool" ON "message_text" ("tool_name") WHERE "tool_name" IS NOT NULL;
CREATE INDEX "call_name" ON "call" ("name");

DROP VIEW "conversation_turns";
DROP VIEW "cowork_sessions";

-- Conversations as two flat tables, for programs that ask in SQL: one row per message, one per session, all agents.
-- "content" and the arguments of "tool_calls" are there for conversations that everturn holds; for those of other programs they
-- are NULL, and the words are in the raw layer, packed. A message is numbered within its session, from 1. Times are ISO 8601
-- with their zone. Each part of the union can use its own index for "tool_name".
CREATE VIEW "conversation_turns" AS
SELECT
    (t."session"::bigint << 24) | t."seq" AS "id",
    s."native_id" AS "session_id",
    t."seq" + 1 AS "turn_number",
    t."role" AS "role",
    t."content" AS "content",
    t."tool_calls" AS "tool_calls",
    t."tool_call_id" AS "tool_call_id",
    t."tool_name" AS "tool_name",
    t."tokens" AS "token_count",
    to_char(to_timestamp(COALESCE(m."at", s."started", v."opened_at") / 1000.0) AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00' AS "created_at"
FROM "message_text" t
JOIN "session" s ON s."id" = t."session"
JOIN "message" m ON m."session" = t."session" AND m."seq" = t."seq"
JOIN "version" v ON v."id" = s."version"
WHERE s."state" = 'current'
UNION ALL
SELECT
    (m."session"::bigint << 24) | m."seq",
    s."native_id",
    m."seq" + 1,
    m."role",
    NULL::text,
    (
        SELECT json_agg(
            json_build_object('id', c."call_id", 'type', 'function', 'function', json_build_object('name', c."name"))
            ORDER BY c."idx"
        )::text
        FROM "call" c
        WHERE c."session" = m."session" AND c."seq" = m."seq" AND c."status" <> 'orphan'
    ),
    NULL::text,
    NULL::text,
    COALESCE((
        SELECT p."tokens_out" FROM "step" p
        WHERE p."session" = m."session" AND p."idx" = m."step" AND p."first_seq" = m."seq"
    ), 0),
    to_char(to_timestamp(COALESCE(m."at", s."started", v."opened_at") / 1000.0) AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00'
FROM "message" m
JOIN "session" s ON s."id" = m."session"
JOIN "version" v ON v."id" = s."version"
WHERE s."state" = 'current'
    AND NOT EXISTS (SELECT 1 FROM "message_text" t WHERE t."session" = m."session" AND t."seq" = m."seq")
    AND NOT EXISTS (SELECT 1 FROM "call" c WHERE c."session" = m."session" AND c."result_seq" = m."seq")
UNION ALL
SELECT
    (m."session"::bigint << 24) | m."seq",
    s."native_id",
    m."seq" + 1,
    m."role",
    NULL::text,
    (
        SELECT json_agg(
            json_build_object('id', c."call_id", 'type', 'function', 'function', json_build_object('name', c."name"))
            ORDER BY c."idx"
        )::text
        FROM "call" c
        WHERE c."session" = m."session" AND c."seq" = m."seq" AND c."status" <> 'orphan'
    ),
    r."call_id",
    r."name",
    COALESCE((
        SELECT p."tokens_out" FROM "step" p
        WHERE p."session" = m."session" AND p."idx" = m."step" AND p."first_seq" = m."seq"
    ), 0),
    to_char(to_timestamp(COALESCE(m."at", s."started", v."opened_at") / 1000.0) AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00'
FROM "call" r
JOIN "message" m ON m."session" = r."session" AND m."seq" = r."result_seq"
JOIN "session" s ON s."id" = m."session"
JOIN "version" v ON v."id" = s."version"
WHERE s."state" = 'current'
    AND NOT EXISTS (SELECT 1 FROM "message_text" t WHERE t."session" = m."session" AND t."seq" = m."seq")
    AND NOT EXISTS (
        SELECT 1 FROM "call" c
        WHERE c."session" = r."session" AND c."result_seq" = r."result_seq"
            AND (c."seq" < r."seq" OR (c."seq" = r."seq" AND c."idx" < r."idx"))
    );

-- A JSON text as it reads; one that PostgreSQL cannot hold (NUL, half a surrogate pair) stays in its quotes.
CREATE VIEW "cowork_sessions" AS
SELECT
    s."native_id" AS "id",
    COALESCE(x."workspace", '') AS "workspace_path",
    COALESCE((
        SELECT NULLIF(CASE WHEN k."value" ~* '\\u(0000|d[89a-f])' THEN k."value" ELSE k."value"::json #>> '{}' END, '')
        FROM "kept" k
        WHERE k."kind" = 'conversation' AND k."agent" = s."agent" AND k."subject" = s."native_id" AND k."key" = 'model'
    ), s."model") AS "model_name",
    COALESCE((
        SELECT CASE WHEN k."value" ~* '\\u(0000|d[89a-f])' THEN k."value" ELSE k."value"::json #>> '{}' END
        FROM "kept" k
        WHERE k."kind" = 'conversation' AND k."agent" = s."agent" AND k."subject" = s."native_id"
            AND k."key" = 'system_prompt'
    ), (
        SELECT t."content" FROM "message" m
        JOIN "message_text" t ON t."session" = m."session" AND t."seq" = m."seq"
        WHERE m."session" = s."id" AND m."seq" < 10 AND m."role" = 'system' AND m."origin" = 'system' AND m."kind" = 'context'
        ORDER BY m."seq" LIMIT 1
    )) AS "system_prompt",
    to_char(to_timestamp(COALESCE(s."started", v."opened_at") / 1000.0) AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00' AS "started_at",
    to_char(to_timestamp(COALESCE(s."ended", s."started", v."opened_at") / 1000.0) AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00' AS "last_active_at",
    COALESCE((
        SELECT k."value"::bigint FROM "kept" k
        WHERE k."kind" = 'conversation' AND k."agent" = s."agent" AND k."subject" = s."native_id"
            AND k."key" = 'total_tokens'
    ), s."tokens_in" + s."tokens_out" + s."tokens_cache_read" + s."tokens_cache_write") AS "total_tokens",
    s."n_messages" AS "turn_count",
    (
        SELECT k."value" FROM "kept" k
        WHERE k."kind" = 'conversation' AND k."agent" = s."agent" AND k."subject" = s."native_id"
            AND k."key" = 'session_state'
    ) AS "session_state",
    COALESCE((
        SELECT k."value"::bigint FROM "kept" k
        WHERE k."kind" = 'conversation' AND k."agent" = s."agent" AND k."subject" = s."native_id"
            AND k."key" = 'is_active'
    ), CASE f."state" WHEN 'gone' THEN 0 ELSE 1 END) AS "is_active"
FROM "session" s
JOIN "version" v ON v."id" = s."version"
JOIN "source_file" f ON f."id" = v."source"
LEFT JOIN "session_text" x ON x."session" = s."id"
WHERE s."state" = 'current';
