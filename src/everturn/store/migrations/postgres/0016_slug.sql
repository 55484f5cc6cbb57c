-- The short name that an agent gives a session. Rows of agents that record one are derived again by the next sync.
ALTER TABLE "session_text" ADD COLUMN "slug" text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE "session_text" ALTER "slug" SET STATISTICS 0;
