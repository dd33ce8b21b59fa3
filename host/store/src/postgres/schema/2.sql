-- Format 2: what tells a host its own transactions, and a fence of the plugins' data.

-- Each transaction of commits writes a new `mark`, so that its host knows it again.
ALTER TABLE head ADD COLUMN mark uuid NOT NULL DEFAULT gen_random_uuid();
ALTER TABLE head ALTER COLUMN mark DROP DEFAULT;

-- The fence of the plugins' data. A host with the lock begins a term. Each write outside of a commit names its term and is counted.
CREATE TABLE host (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    term bigint NOT NULL,
    writes bigint NOT NULL
);
INSERT INTO host (term, writes) VALUES (0, 0);

-- Nothing reads it.
ALTER TABLE audiences DROP COLUMN kind;
