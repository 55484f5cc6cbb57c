-- Kept layer of a shared archive: who a person is at the team's identity provider (OpenID Connect).
CREATE TABLE "identity" (
    "person" bigint PRIMARY KEY,
    "email" text COLLATE "C" NOT NULL UNIQUE, -- in lower case; must be verified by the provider at the first login
    "issuer" text COLLATE "C" NOT NULL, -- "" until the first login; from then on the subject counts, not the address
    "subject" text COLLATE "C" NOT NULL
);
CREATE INDEX "identity_subject" ON "identity" ("issuer", "subject");
ALTER TABLE "identity" ENABLE ROW LEVEL SECURITY;
