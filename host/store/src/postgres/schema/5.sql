-- Format 5: components that all hosts share.

-- The bytes of a component and the record of its tools. `last_live` is when a host last said that it needs the component.
CREATE TABLE components (
    digest bytea PRIMARY KEY,
    bytes bytea NOT NULL,
    record bytea NOT NULL,
    last_live timestamptz NOT NULL
);
