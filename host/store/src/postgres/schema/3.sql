-- Format 3: several hosts on one database.

-- A host is alive as long as the row with its owner exists. Each transaction of commits writes a new `mark` into the row of its host,
-- so that the host knows it again. `position` and `hash` are those of the head after that transaction.
CREATE TABLE hosts (
    name text COLLATE "C" PRIMARY KEY,
    owner uuid NOT NULL,
    run integer NOT NULL GENERATED ALWAYS AS IDENTITY,
    mark uuid NOT NULL DEFAULT gen_random_uuid(),
    position bigint NOT NULL,
    hash bytea NOT NULL,
    lease_until timestamptz NOT NULL,
    renewed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    version text NOT NULL,
    address text,
    config bytea NOT NULL,
    key bytea NOT NULL,
    running bigint NOT NULL DEFAULT 0,
    draining boolean NOT NULL DEFAULT false
);
ALTER TABLE head DROP COLUMN mark;

-- The run of the host that made a commit. Other hosts have to be told of it.
ALTER TABLE commits ADD COLUMN run integer;

-- The fence of the plugins' data. No two hosts have the same term.
CREATE SEQUENCE terms;
CREATE TABLE host_values (
    host text COLLATE "C" PRIMARY KEY REFERENCES hosts (name) ON DELETE CASCADE,
    term bigint NOT NULL DEFAULT nextval('terms'),
    writes bigint NOT NULL DEFAULT 0
);
DROP TABLE host;

-- The tools that clients at a host carry out for a conversation.
CREATE TABLE attachments (
    host text COLLATE "C" REFERENCES hosts (name) ON DELETE CASCADE,
    conversation text COLLATE "C",
    tools text[] NOT NULL,
    PRIMARY KEY (conversation, host)
);
CREATE INDEX attachments_of_host ON attachments (host);

-- What the open turns of each principal use.
CREATE TABLE open_turns (
    principal text COLLATE "C" PRIMARY KEY,
    turns bigint NOT NULL,
    bytes bigint NOT NULL,
    suspensions bigint NOT NULL
);

-- The second lock of the names of signals.
ALTER TABLE suspensions ADD COLUMN signal text COLLATE "C";
CREATE UNIQUE INDEX suspensions_signal ON suspensions (conversation, signal) WHERE is_open AND signal IS NOT NULL;

-- Small files that all hosts share. No version is given twice, also not to a document that is deleted and made again.
CREATE SEQUENCE document_versions;
CREATE TABLE documents (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL DEFAULT nextval('document_versions'),
    body bytea NOT NULL
);
