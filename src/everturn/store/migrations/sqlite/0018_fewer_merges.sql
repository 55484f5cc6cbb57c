-- Parts of the index are merged sixteen at a time instead of four: new text is written half as often, and a search for a
-- word reads a few more parts. More than 32 of a size are still merged at once.
INSERT INTO "fts" ("fts", "rank") VALUES ('automerge', 16);
INSERT INTO "fts" ("fts", "rank") VALUES ('crisismerge', 32);
