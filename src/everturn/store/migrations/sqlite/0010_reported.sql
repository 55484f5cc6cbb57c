-- Derived layer, structure: what subagents did, as the results of the calls that started them say.
CREATE TABLE "reported" (
    "session" INTEGER NOT NULL REFERENCES "session" ("id"),
    "seq" INTEGER NOT NULL,
    "idx" INTEGER NOT NULL,
    "turn" INTEGER NOT NULL,
    "at" INTEGER,
    "child" TEXT NOT NULL,
    "tokens" INTEGER NOT NULL,
    "calls" INTEGER NOT NULL,
    "duration_ms" INTEGER,
    PRIMARY KEY ("session", "seq", "idx")
) STRICT, WITHOUT ROWID;
