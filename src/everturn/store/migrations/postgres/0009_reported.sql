-- Derived layer, structure: what subagents did, as the results of the calls that started them say.
CREATE TABLE "reported" (
    "session" bigint NOT NULL,
    "seq" bigint NOT NULL,
    "idx" bigint NOT NULL,
    "turn" bigint NOT NULL,
    "at" bigint,
    "child" text COLLATE "C" NOT NULL,
    "tokens" bigint NOT NULL,
    "calls" bigint NOT NULL,
    "duration_ms" bigint,
    PRIMARY KEY ("session", "seq", "idx")
);
