-- Kept layer: what agents told `everturn-hook` while they worked, without any content. It cannot be derived again once the
-- transcript is gone. "own" is the session of the archive that holds the same call, NULL as long as none does.
CREATE TABLE "hooked" (
    "session" TEXT NOT NULL, -- native id
    "ref" TEXT NOT NULL, -- the call id; where there is none, a mark made of the time and the process
    "event" TEXT NOT NULL,
    "phase" TEXT NOT NULL,
    "call_id" TEXT NOT NULL,
    "tool" TEXT NOT NULL,
    "agent_id" TEXT NOT NULL,
    "at" INTEGER NOT NULL,
    "duration_ms" INTEGER,
    "error_class" TEXT NOT NULL,
    "input_size" INTEGER,
    "output_size" INTEGER,
    "batch" TEXT NOT NULL,
    "batch_index" INTEGER,
    "batch_size" INTEGER,
    "own" INTEGER,
    PRIMARY KEY ("session", "ref", "event")
) STRICT, WITHOUT ROWID;
CREATE INDEX "hooked_alone" ON "hooked" ("at") WHERE "own" IS NULL AND "phase" <> 'session';
CREATE INDEX "session_named" ON "session" ("native_id");

-- Calls that only a hook has seen, in columns of "invocations": together they are every call once.
CREATE VIEW "hooked_invocations" AS
SELECT
    "session" AS "session_id",
    MAX("call_id") AS "tool_use_id",
    MAX("tool") AS "tool_name",
    NULL AS "turn_id",
    NULL AS "turn_sequence",
    CASE MAX("batch_size") WHEN 1 THEN 0 ELSE MAX("batch_index") + 1 END AS "parallel_group",
    MAX("batch_index") AS "parallel_index",
    MAX("batch_size") AS "batch_size",
    MAX(CASE "phase" WHEN 'failed' THEN 1 ELSE 0 END) AS "is_error",
    MAX("error_class") AS "error_class",
    MIN("at") AS "at",
    MAX("duration_ms") AS "duration_ms",
    MAX("input_size") AS "input_size",
    MAX("output_size") AS "output_size",
    MAX(CASE "agent_id" WHEN '' THEN 0 ELSE 1 END) AS "is_subagent"
FROM "hooked"
WHERE "own" IS NULL AND "phase" <> 'session' AND ("call_id" <> '' OR "phase" <> 'begun')
GROUP BY "session", "ref";
