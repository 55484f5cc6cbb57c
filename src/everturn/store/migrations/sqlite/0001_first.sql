-- Raw layer: the truth.
CREATE TABLE "source_file" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT,
    "format" TEXT NOT NULL,
    "machine" TEXT NOT NULL,
    "owner" TEXT NOT NULL,
    "path" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "native_id" TEXT NOT NULL,
    "parent" TEXT NOT NULL,
    "mode" TEXT NOT NULL,
    "state" TEXT NOT NULL,
    "version" INTEGER NOT NULL,
    "fail_reason" TEXT NOT NULL,
    "fail_count" INTEGER NOT NULL,
    "retry_at" INTEGER NOT NULL,
    "container" INTEGER NOT NULL,
    UNIQUE ("machine", "path")
) STRICT;

CREATE TABLE "version" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT,
    "source" INTEGER NOT NULL REFERENCES "source_file" ("id"),
    "number" INTEGER NOT NULL,
    "reason" TEXT NOT NULL,
    "mode" TEXT NOT NULL,
    "offset" INTEGER NOT NULL,
    "size" INTEGER NOT NULL,
    "parsed" INTEGER NOT NULL,
    "device" INTEGER NOT NULL,
    "inode" INTEGER NOT NULL,
    "file_size" INTEGER NOT NULL,
    "mtime_ns" INTEGER NOT NULL,
    "head" BLOB NOT NULL,
    "tail" BLOB NOT NULL,
    "parser" INTEGER NOT NULL,
    "state" BLOB NOT NULL,
    "lines" INTEGER NOT NULL,
    "glued" INTEGER NOT NULL,
    "opened_at" INTEGER NOT NULL,
    "changed_at" INTEGER NOT NULL,
    "erased" INTEGER NOT NULL,
    UNIQUE ("source", "number")
) STRICT;

CREATE TABLE "blob" (
    "id" INTEGER PRIMARY KEY,
    "digest" BLOB NOT NULL UNIQUE,
    "data" BLOB NOT NULL
) STRICT;

CREATE TABLE "chunk" (
    "version" INTEGER NOT NULL REFERENCES "version" ("id"),
    "start" INTEGER NOT NULL,
    "size" INTEGER NOT NULL,
    "digest" BLOB NOT NULL REFERENCES "blob" ("digest"),
    PRIMARY KEY ("version", "start")
) STRICT, WITHOUT ROWID;
CREATE INDEX "chunk_digest" ON "chunk" ("digest");

-- Derived layer, structure: no text, no path, no output.
CREATE TABLE "session" (
    "id" INTEGER PRIMARY KEY AUTOINCREMENT,
    "agent" TEXT NOT NULL,
    "native_id" TEXT NOT NULL,
    "version" INTEGER NOT NULL REFERENCES "version" ("id"),
    "kind" TEXT NOT NULL,
    "parent" TEXT NOT NULL,
    "mode" TEXT NOT NULL,
    "state" TEXT NOT NULL,
    "machine" TEXT NOT NULL,
    "owner" TEXT NOT NULL,
    "client" TEXT NOT NULL,
    "model" TEXT NOT NULL,
    "workspace_key" TEXT NOT NULL,
    "started" INTEGER,
    "ended" INTEGER,
    "n_messages" INTEGER NOT NULL,
    "n_inherited" INTEGER NOT NULL,
    "n_turns" INTEGER NOT NULL,
    "n_steps" INTEGER NOT NULL,
    "n_calls" INTEGER NOT NULL,
    "n_errors" INTEGER NOT NULL,
    "n_prompts" INTEGER NOT NULL,
    "tokens_in" INTEGER NOT NULL,
    "tokens_out" INTEGER NOT NULL,
    "tokens_cache_read" INTEGER NOT NULL,
    "tokens_cache_write" INTEGER NOT NULL,
    UNIQUE ("version", "native_id")
) STRICT;
CREATE INDEX "session_native" ON "session" ("agent", "native_id");
CREATE INDEX "session_newest" ON "session" (COALESCE("ended", 0), "id");
CREATE INDEX "session_superseded" ON "session" ("id") WHERE "state" = 'superseded';

CREATE TABLE "turn" (
    "session" INTEGER NOT NULL REFERENCES "session" ("id"),
    "idx" INTEGER NOT NULL,
    "first_seq" INTEGER NOT NULL,
    "last_seq" INTEGER NOT NULL,
    "starter" TEXT NOT NULL,
    "started" INTEGER,
    "ended" INTEGER,
    "reported_ms" INTEGER,
    "n_messages" INTEGER NOT NULL,
    "n_steps" INTEGER NOT NULL,
    "n_calls" INTEGER NOT NULL,
    "n_batches" INTEGER NOT NULL,
    "n_errors" INTEGER NOT NULL,
    "answered" INTEGER NOT NULL,
    "compacted" INTEGER NOT NULL,
    "interrupted" INTEGER NOT NULL,
    "inherited" INTEGER NOT NULL,
    PRIMARY KEY ("session", "idx")
) STRICT, WITHOUT ROWID;

CREATE TABLE "step" (
    "session" INTEGER NOT NULL REFERENCES "session" ("id"),
    "idx" INTEGER NOT NULL,
    "turn" INTEGER NOT NULL,
    "first_seq" INTEGER NOT NULL,
    "provider_id" TEXT NOT NULL,
    "model" TEXT NOT NULL,
    "started" INTEGER,
    "ended" INTEGER,
    "n_calls" INTEGER NOT NULL,
    "resumes" INTEGER NOT NULL,
    "tokens_in" INTEGER NOT NULL,
    "tokens_out" INTEGER NOT NULL,
    "tokens_cache_read" INTEGER NOT NULL,
    "tokens_cache_write" INTEGER NOT NULL,
    "inherited" INTEGER NOT NULL,
    PRIMARY KEY ("session", "idx")
) STRICT, WITHOUT ROWID;
CREATE INDEX "step_first" ON "step" ("session", "first_seq");

CREATE TABLE "call" (
    "session" INTEGER NOT NULL REFERENCES "session" ("id"),
    "seq" INTEGER NOT NULL,
    "idx" INTEGER NOT NULL,
    "call_id" TEXT NOT NULL,
    "turn" INTEGER NOT NULL,
    "step" INTEGER NOT NULL,
    "batch" INTEGER NOT NULL,
    "position" INTEGER NOT NULL,
    "name" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "status" TEXT NOT NULL,
    "error_class" TEXT NOT NULL,
    "exit_status" INTEGER,
    "started" INTEGER,
    "ended" INTEGER,
    "duration_ms" INTEGER,
    "input_size" INTEGER NOT NULL,
    "output_size" INTEGER NOT NULL,
    "result_seq" INTEGER,
    "inherited" INTEGER NOT NULL,
    PRIMARY KEY ("session", "seq", "idx")
) STRICT, WITHOUT ROWID;
CREATE INDEX "call_id" ON "call" ("session", "call_id");
CREATE INDEX "call_unpaired" ON "call" ("status", "session") WHERE "status" IN ('open', 'orphan');

CREATE TABLE "message" (
    "session" INTEGER NOT NULL REFERENCES "session" ("id"),
    "seq" INTEGER NOT NULL,
    "turn" INTEGER NOT NULL,
    "step" INTEGER NOT NULL,
    "role" TEXT NOT NULL,
    "origin" TEXT NOT NULL,
    "kind" TEXT NOT NULL,
    "at" INTEGER,
    "precision" TEXT NOT NULL,
    "fingerprint" INTEGER,
    "start" INTEGER NOT NULL,
    "size" INTEGER NOT NULL,
    "fidelity" TEXT NOT NULL,
    "inherited" INTEGER NOT NULL,
    PRIMARY KEY ("session", "seq")
) STRICT, WITHOUT ROWID;
CREATE INDEX "message_fingerprint" ON "message" ("fingerprint") WHERE "fingerprint" IS NOT NULL;

CREATE TABLE "link" (
    "session" INTEGER NOT NULL REFERENCES "session" ("id"),
    "relation" TEXT NOT NULL,
    "native_id" TEXT NOT NULL,
    "call_id" TEXT NOT NULL,
    "hint" INTEGER NOT NULL,
    "n" INTEGER NOT NULL,
    "stated" INTEGER NOT NULL, -- 1: the source says so; 0: found by comparing messages, gone when "n" is 0
    PRIMARY KEY ("session", "relation", "native_id", "call_id", "hint")
) STRICT, WITHOUT ROWID;
CREATE INDEX "link_native" ON "link" ("native_id");

CREATE TABLE "census" (
    "version" INTEGER NOT NULL REFERENCES "version" ("id"),
    "type" TEXT NOT NULL,
    "client" TEXT NOT NULL,
    "disposition" TEXT NOT NULL,
    "n" INTEGER NOT NULL,
    PRIMARY KEY ("version", "type", "client", "disposition")
) STRICT, WITHOUT ROWID;

-- Derived layer, content.
CREATE TABLE "session_text" (
    "session" INTEGER PRIMARY KEY REFERENCES "session" ("id"),
    "title" TEXT NOT NULL,
    "title_rank" INTEGER NOT NULL,
    "summary" TEXT NOT NULL,
    "workspace" TEXT NOT NULL,
    "branch" TEXT NOT NULL,
    "first_prompt" TEXT NOT NULL,
    "team" TEXT NOT NULL,
    "agent_name" TEXT NOT NULL
) STRICT;

CREATE TABLE "artifact" (
    "session" INTEGER NOT NULL REFERENCES "session" ("id"),
    "seq" INTEGER NOT NULL,
    "idx" INTEGER NOT NULL,
    "n" INTEGER NOT NULL,
    "turn" INTEGER NOT NULL,
    "action" TEXT NOT NULL,
    "path" TEXT NOT NULL,
    PRIMARY KEY ("session", "seq", "idx", "n")
) STRICT, WITHOUT ROWID;

CREATE TABLE "problem" (
    "version" INTEGER NOT NULL REFERENCES "version" ("id"),
    "start" INTEGER NOT NULL,
    "size" INTEGER NOT NULL,
    "kind" TEXT NOT NULL,
    "reason" TEXT NOT NULL,
    "provisional" INTEGER NOT NULL
) STRICT;
CREATE INDEX "problem_place" ON "problem" ("version", "start");

-- Kept layer: what cannot be derived.
CREATE TABLE "tombstone" (
    "kind" TEXT NOT NULL,
    "agent" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "at" INTEGER NOT NULL,
    PRIMARY KEY ("kind", "agent", "key")
) STRICT, WITHOUT ROWID;

CREATE TABLE "kept" (
    "kind" TEXT NOT NULL,
    "agent" TEXT NOT NULL,
    "subject" TEXT NOT NULL,
    "key" TEXT NOT NULL,
    "value" TEXT NOT NULL,
    "at" INTEGER NOT NULL,
    PRIMARY KEY ("kind", "agent", "subject", "key")
) STRICT, WITHOUT ROWID;

CREATE TABLE "setting" (
    "key" TEXT PRIMARY KEY,
    "value" TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Index: the columns are the field groups, in order. A row is session << 24 | seq.
CREATE VIRTUAL TABLE "fts" USING fts5 (
    prompt, answer, thinking, tool_input, tool_output, summary, meta,
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 0'
);
INSERT INTO "fts" ("fts", "rank") VALUES ('hashsize', 16777216);

-- One row for each tool call, each once: content-free.
CREATE VIEW "invocations" AS
SELECT
    s."native_id" AS "session_id",
    c."call_id" AS "tool_use_id",
    c."name" AS "tool_name",
    s."native_id" || '#' || c."turn" AS "turn_id",
    c."position" AS "turn_sequence",
    c."batch" AS "parallel_index",
    COALESCE(p."n_calls", 1) AS "batch_size",
    CASE c."status" WHEN 'error' THEN 1 ELSE 0 END AS "is_error",
    c."duration_ms" AS "duration_ms",
    CASE WHEN s."kind" IN ('subagent', 'sidechain') THEN 1 ELSE 0 END AS "is_subagent"
FROM "call" c
JOIN "session" s ON s."id" = c."session"
LEFT JOIN "step" p ON p."session" = c."session" AND p."idx" = c."step"
WHERE c."inherited" = 0 AND c."status" <> 'orphan';
