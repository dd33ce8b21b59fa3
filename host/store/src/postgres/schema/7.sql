-- Format 7. Each host says which plugins are live there, so that a difference between hosts is noticed.

-- The names of the plugins, and in the same order the digests of their components. No row: the host has not said it yet, or knows only an
-- earlier format. These are no columns of `hosts`, because each transaction of commits writes a new version of the row of its host.
CREATE TABLE live_plugins (
    host text COLLATE "C" PRIMARY KEY REFERENCES hosts (name) ON DELETE CASCADE,
    names text[] NOT NULL,
    digests bytea[] NOT NULL,
    CHECK (cardinality(names) = cardinality(digests))
);
