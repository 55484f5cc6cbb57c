-- The live path: which messages and turns a person took back by going back before them. Rows of agents that record this are
-- derived again by the next sync.
ALTER TABLE "message" ADD COLUMN "taken_back" INTEGER NOT NULL DEFAULT 0;
ALTER TABLE "turn" ADD COLUMN "taken_back" INTEGER NOT NULL DEFAULT 0;
CREATE INDEX "turn_taken_back" ON "turn" ("session") WHERE "taken_back"=1;
