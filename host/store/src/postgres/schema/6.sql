-- Format 6. Hosts of different versions can run at the same time, if the older ones know a format that may still be used.

-- The oldest format whose hosts may use the tables. A migration that keeps it low lets older hosts run on.
ALTER TABLE format ADD COLUMN oldest integer NOT NULL DEFAULT 6;

-- The newest format that a host knows.
ALTER TABLE hosts ADD COLUMN format integer NOT NULL DEFAULT 5;
ALTER TABLE hosts ALTER COLUMN format DROP DEFAULT;

-- The turn is no key of this index. Otherwise the server may read all of it, with what was removed, to find a turn: after an automatic
-- vacuum, its statistics often say that the table is empty.
DROP INDEX unfinished_turns_due;
CREATE INDEX unfinished_turns_due ON unfinished_turns (due_at) INCLUDE (turn);
