-- Messages that hold the result of a certain call.
CREATE INDEX IF NOT EXISTS "call_result" ON "call" ("session", "result_seq");

-- Conversations as two flat tables, for programs that ask in SQL: one row per message, one per session, all agents.
-- Words are not in them: they are in the raw layer, packed, and "content" is always NULL here. A message is numbered
-- within its session, from 1. Times are ISO 8601 with their zone.
CREATE VIEW "conversation_turns" AS
SELECT
    (m."session" << 24) | m."seq" AS "id",
    s."native_id" AS "session_id",
    m."seq" + 1 AS "turn_number",
    m."role" AS "role",
    NULL::text AS "content",
    (
        SELECT json_agg(
            json_build_object('id', c."call_id", 'type', 'function', 'function', json_build_object('name', c."name"))
            ORDER BY c."idx"
        )::text
        FROM "call" c
        WHERE c."session" = m."session" AND c."seq" = m."seq" AND c."status" <> 'orphan'
    ) AS "tool_calls",
    (
        SELECT c."call_id" FROM "call" c
        WHERE c."session" = m."session" AND c."result_seq" = m."seq"
        ORDER BY c."seq", c."idx" LIMIT 1
    ) AS "tool_call_id",
    (
        SELECT c."name" FROM "call" c
        WHERE c."session" = m."session" AND c."result_seq" = m."seq"
        ORDER BY c."seq", c."idx" LIMIT 1
    ) AS "tool_name",
    COALESCE((
        SELECT p."tokens_out" FROM "step" p
        WHERE p."session" = m."session" AND p."idx" = m."step" AND p."first_seq" = m."seq"
    ), 0) AS "token_count",
    to_char(to_timestamp(COALESCE(m."at", s."started", v."opened_at") / 1000.0) AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00' AS "created_at"
FROM "message" m
JOIN "session" s ON s."id" = m."session"
JOIN "version" v ON v."id" = s."version"
WHERE s."state" = 'current';

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
    (
        SELECT CASE WHEN k."value" ~* '\\u(0000|d[89a-f])' THEN k."value" ELSE k."value"::json #>> '{}' END
        FROM "kept" k
        WHERE k."kind" = 'conversation' AND k."agent" = s."agent" AND k."subject" = s."native_id"
            AND k."key" = 'system_prompt'
    ) AS "system_prompt",
    to_char(to_timestamp(COALESCE(s."started", v."opened_at") / 1000.0) AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00' AS "started_at",
    to_char(to_timestamp(COALESCE(s."ended", s."started", v."opened_at") / 1000.0) AT TIME ZONE 'UTC',
        'YYYY-MM-DD"T"HH24:MI:SS.MS') || '+00:00' AS "last_active_at",
    COALESCE((
        SELECT k."value"::bigint FROM "kept" k
        WHERE k."kind" = 'conversation' AND k."agent" = s."agent" AND k."subject" = s."native_id"
            AND k."key" = 'total_tokens'
    ), s."tokens_in" + s."tokens_out") AS "total_tokens",
    s."n_messages" AS "turn_count",
    (
        SELECT k."value" FROM "kept" k
        WHERE k."kind" = 'conversation' AND k."agent" = s."agent" AND k."subject" = s."native_id"
            AND k."key" = 'session_state'
    ) AS "session_state",
    CASE f."state" WHEN 'gone' THEN 0 ELSE 1 END AS "is_active"
FROM "session" s
JOIN "version" v ON v."id" = s."version"
JOIN "source_file" f ON f."id" = v."source"
LEFT JOIN "session_text" x ON x."session" = s."id"
WHERE s."state" = 'current';
