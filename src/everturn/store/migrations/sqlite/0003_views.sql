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
    CAST(NULL AS TEXT) AS "content",
    (
        SELECT json_group_array(json_object('id', c."call_id", 'type', 'function', 'function', json_object('name', c."name")))
        FROM "call" c
        WHERE c."session" = m."session" AND c."seq" = m."seq" AND c."status" <> 'orphan'
        HAVING count(*) > 0
    ) AS "tool_calls",
    (
        SELECT c."call_id" FROM "call" c
        WHERE c."session" = m."session" AND c."result_seq" = m."seq"
        ORDER BY +c."seq", +c."idx" LIMIT 1
    ) AS "tool_call_id",
    (
        SELECT c."name" FROM "call" c
        WHERE c."session" = m."session" AND c."result_seq" = m."seq"
        ORDER BY +c."seq", +c."idx" LIMIT 1
    ) AS "tool_name",
    COALESCE((
        SELECT p."tokens_out" FROM "step" p
        WHERE p."session" = m."session" AND p."idx" = m."step" AND p."first_seq" = m."seq"
    ), 0) AS "token_count",
    (
        SELECT strftime('%Y-%m-%dT%H:%M:%S', t."at" / 1000, 'unixepoch') || printf('.%03d+00:00', t."at" % 1000)
        FROM (SELECT COALESCE(m."at", s."started", v."opened_at") AS "at") t
    ) AS "created_at"
FROM "message" m
JOIN "session" s ON s."id" = m."session"
JOIN "version" v ON v."id" = s."version"
WHERE s."state" = 'current';

CREATE VIEW "cowork_sessions" AS
SELECT
    s."native_id" AS "id",
    COALESCE(x."workspace", '') AS "workspace_path",
    COALESCE((
        SELECT NULLIF(json_extract(k."value", '$'), '') FROM "kept" k
        WHERE k."kind" = 'conversation' AND k."agent" = s."agent" AND k."subject" = s."native_id" AND k."key" = 'model'
    ), s."model") AS "model_name",
    (
        SELECT json_extract(k."value", '$') FROM "kept" k
        WHERE k."kind" = 'conversation' AND k."agent" = s."agent" AND k."subject" = s."native_id"
            AND k."key" = 'system_prompt'
    ) AS "system_prompt",
    (
        SELECT strftime('%Y-%m-%dT%H:%M:%S', t."at" / 1000, 'unixepoch') || printf('.%03d+00:00', t."at" % 1000)
        FROM (SELECT COALESCE(s."started", v."opened_at") AS "at") t
    ) AS "started_at",
    (
        SELECT strftime('%Y-%m-%dT%H:%M:%S', t."at" / 1000, 'unixepoch') || printf('.%03d+00:00', t."at" % 1000)
        FROM (SELECT COALESCE(s."ended", s."started", v."opened_at") AS "at") t
    ) AS "last_active_at",
    COALESCE((
        SELECT CAST(k."value" AS INTEGER) FROM "kept" k
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
