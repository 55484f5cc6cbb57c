-- The short name that an agent gives a session. Rows of agents that record one are derived again by the next sync.
ALTER TABLE "session_text" ADD COLUMN "slug" TEXT NOT NULL DEFAULT '';
