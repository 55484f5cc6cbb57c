-- Raw layer: chunks that are to be deleted from the place outside of the database where their bytes are kept.
CREATE TABLE "blob_gone" (
    "digest" BLOB PRIMARY KEY
) WITHOUT ROWID;
