-- Format 1. A released file never changes: a new format is a new file (docs/decisions/0014-postgresql.md).
-- Records are bytes in the stored form of `host/store/src/record.rs`. Times are milliseconds since 1970.

-- The lock of all commits, and the head of the audit chain.
CREATE TABLE head (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    position bigint NOT NULL,
    hash bytea NOT NULL,
    retention_time bigint
);
INSERT INTO head (position, hash) VALUES (0, decode(repeat('00', 32), 'hex'));

-- Every commit with facts: the logs of turns, the feeds and the audit chain. A removal keeps the row and its digest, and removes
-- the record.
CREATE TABLE commits (
    position bigint PRIMARY KEY,
    hash bytea NOT NULL,
    source text NOT NULL CHECK (source IN ('turn', 'plugin', 'started', 'revoked', 'removal')),
    turn uuid,
    number bigint,
    conversation text COLLATE "C",
    record bytea,
    digest bytea,
    removed_by bigint,
    CHECK ((source = 'turn') = (turn IS NOT NULL)),
    CHECK ((source = 'turn') = (number IS NOT NULL)),
    CHECK ((source = 'turn') = (conversation IS NOT NULL)),
    CHECK ((record IS NULL) = (removed_by IS NOT NULL)),
    CHECK ((record IS NULL) = (digest IS NOT NULL))
);
-- The second lock of a log: no number is taken twice.
CREATE UNIQUE INDEX commits_of_turn ON commits (turn, number) WHERE source = 'turn';
CREATE INDEX commits_of_conversation ON commits (conversation, position) INCLUDE (turn, number) WHERE record IS NOT NULL;
CREATE INDEX commits_of_host ON commits (source, position) WHERE source <> 'turn';

CREATE TABLE ended_turns (
    turn uuid PRIMARY KEY,
    ended_at bigint NOT NULL,
    position bigint,
    ending text NOT NULL CHECK (ending IN ('settled', 'aborted', 'cancelled')),
    conversation text COLLATE "C" NOT NULL,
    caller text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL,
    record bytea NOT NULL
);
CREATE INDEX ended_turns_by_age ON ended_turns (ended_at, turn);
CREATE INDEX ended_turns_in_feed ON ended_turns (position) WHERE position IS NOT NULL;
CREATE INDEX ended_turns_of_caller ON ended_turns (caller, position) WHERE position IS NOT NULL;

CREATE TABLE unfinished_turns (
    turn uuid PRIMARY KEY,
    due_at bigint NOT NULL,
    running boolean NOT NULL
);
CREATE INDEX unfinished_turns_due ON unfinished_turns (due_at, turn);

CREATE TABLE conversations (
    conversation text COLLATE "C" PRIMARY KEY,
    owner text COLLATE "C" NOT NULL
);

CREATE TABLE calls (
    conversation text COLLATE "C",
    id text COLLATE "C",
    turn uuid NOT NULL,
    PRIMARY KEY (conversation, id)
);

-- `conversation` is that of the caller, also for nested turns. `ending` is a digest: an end may be a long text.
CREATE TABLE suspensions (
    id uuid PRIMARY KEY,
    conversation text COLLATE "C" NOT NULL,
    caller text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL,
    kind smallint NOT NULL,
    is_open boolean NOT NULL,
    ending bytea,
    record bytea NOT NULL
);
CREATE INDEX suspensions_open ON suspensions (kind, id) WHERE is_open;
CREATE INDEX suspensions_open_tool ON suspensions (tool, kind, id) WHERE is_open;
CREATE INDEX suspensions_open_conversation ON suspensions (conversation, kind, id) WHERE is_open;
CREATE INDEX suspensions_open_conversation_tool ON suspensions (conversation, tool, kind, id) WHERE is_open;
CREATE INDEX suspensions_open_caller ON suspensions (caller, kind, id) WHERE is_open;
CREATE INDEX suspensions_open_caller_tool ON suspensions (caller, tool, kind, id) WHERE is_open;
CREATE INDEX suspensions_ended ON suspensions (kind, id) WHERE NOT is_open;
CREATE INDEX suspensions_ended_tool ON suspensions (tool, kind, id) WHERE NOT is_open;
CREATE INDEX suspensions_ended_conversation ON suspensions (conversation, kind, id) WHERE NOT is_open;
CREATE INDEX suspensions_ended_conversation_tool ON suspensions (conversation, tool, kind, id) WHERE NOT is_open;
CREATE INDEX suspensions_ended_caller ON suspensions (caller, kind, id) WHERE NOT is_open;
CREATE INDEX suspensions_ended_caller_tool ON suspensions (caller, tool, kind, id) WHERE NOT is_open;
CREATE INDEX suspensions_ended_how ON suspensions (ending, kind, id) WHERE NOT is_open;

-- Who ended a suspension.
CREATE TABLE suspensions_ended_by (
    principal text COLLATE "C",
    kind smallint,
    suspension uuid REFERENCES suspensions (id) ON DELETE CASCADE,
    PRIMARY KEY (principal, kind, suspension)
);
CREATE INDEX suspensions_ended_by_suspension ON suspensions_ended_by (suspension);

-- The audiences of open suspensions, each with its digest and the number of suspensions that it may answer.
CREATE TABLE audiences (
    digest bytea PRIMARY KEY,
    kind smallint NOT NULL,
    waiting bigint NOT NULL,
    record bytea NOT NULL
);
-- The same numbers for one conversation (c:...) or caller (p:...) or all (empty), and for one tool or all (empty).
CREATE TABLE audience_counts (
    scope text COLLATE "C",
    tool text COLLATE "C",
    audience bytea REFERENCES audiences (digest) ON DELETE CASCADE,
    waiting bigint NOT NULL,
    PRIMARY KEY (scope, tool, audience)
);
CREATE INDEX audience_counts_of_audience ON audience_counts (audience);
-- The open suspensions of each audience.
CREATE TABLE waiting (
    suspension uuid PRIMARY KEY,
    audience bytea NOT NULL,
    conversation text COLLATE "C" NOT NULL,
    caller text COLLATE "C" NOT NULL,
    tool text COLLATE "C" NOT NULL
);
CREATE INDEX waiting_all ON waiting (audience, suspension);
CREATE INDEX waiting_tool ON waiting (audience, tool, suspension);
CREATE INDEX waiting_conversation ON waiting (audience, conversation, tool, suspension);
CREATE INDEX waiting_caller ON waiting (audience, caller, tool, suspension);

-- The size of the records of each principal's turns.
CREATE TABLE kept (
    principal text COLLATE "C" PRIMARY KEY,
    bytes bigint NOT NULL
);

-- A row with `next_at` has another attempt to come.
CREATE TABLE deliveries (
    is_about_turn boolean,
    subject uuid,
    number bigint,
    webhook text COLLATE "C",
    next_at bigint,
    record bytea NOT NULL,
    PRIMARY KEY (is_about_turn, subject, number, webhook)
);
CREATE INDEX deliveries_due ON deliveries (webhook, next_at, subject, number) WHERE next_at IS NOT NULL;

CREATE TABLE run_logs (
    turn uuid,
    call integer,
    run bigint,
    written bigint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (turn, call, run)
);

-- `run` may append. Null: no run may.
CREATE TABLE journals (
    turn uuid,
    call integer,
    run bigint,
    length bigint NOT NULL,
    PRIMARY KEY (turn, call)
);
CREATE TABLE journal_entries (
    turn uuid,
    call integer,
    number bigint,
    record bytea NOT NULL,
    PRIMARY KEY (turn, call, number),
    FOREIGN KEY (turn, call) REFERENCES journals (turn, call) ON DELETE CASCADE
);

-- The record is a standing approval as it was given.
CREATE TABLE standing_approvals (
    id uuid PRIMARY KEY,
    used bigint NOT NULL,
    revoked_by text COLLATE "C",
    revoked_at bigint,
    record bytea NOT NULL,
    CHECK ((revoked_by IS NULL) = (revoked_at IS NULL))
);

CREATE TABLE denials (
    conversation text COLLATE "C",
    alike bytea,
    denied_at bigint NOT NULL,
    PRIMARY KEY (conversation, alike)
);

-- The key-value data of plugins.
CREATE TABLE plugin_values (
    key bytea PRIMARY KEY,
    value bytea NOT NULL
);
