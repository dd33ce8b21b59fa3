-- Format 3: several hosts on one database.

-- Small files that all hosts share. No version is given twice, also not to a document that is deleted and made again.
CREATE SEQUENCE document_versions;
CREATE TABLE documents (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL DEFAULT nextval('document_versions'),
    body bytea NOT NULL
);
