-- Kept layer of a shared archive: who a person is at the team's identity provider (OpenID Connect).
CREATE TABLE "identity" (
    "person" INTEGER PRIMARY KEY,
    "email" TEXT NOT NULL UNIQUE, -- in lower case; must be verified by the provider at the first login
    "issuer" TEXT NOT NULL, -- "" until the first login; from then on the subject counts, not the address
    "subject" TEXT NOT NULL
);
CREATE INDEX "identity_subject" ON "identity" ("issuer", "subject");
