//! The statements that write. Each takes columns as arrays, and so any number of rows. Each looks its rows up by their
//! keys, also while the statistics of the server say that the table is empty.

pub(in crate::postgres) const STATEMENTS: &[&str] = &[
    RETENTION_TIME,
    COMMITS,
    OWNERS,
    CALLS,
    DUE,
    ENDED_UNFINISHED,
    ENDED,
    SUSPENSIONS,
    FORGET_ENDED_BY,
    ENDED_BY,
    AUDIENCES,
    COUNTS,
    FORGET_COUNTS,
    FORGET_AUDIENCES,
    WAITING,
    FORGET_WAITING,
    KEPT_MORE,
    KEPT_LESS,
    OPEN,
    FORGET_OPEN,
    DELIVERIES,
    FORGET_RUN_LOGS,
    FORGET_JOURNALS,
    RUN_LOGS,
    JOURNALS,
    ENTRIES,
    STANDINGS,
    FORGET_STANDINGS,
    DENIALS,
    FORGET_DENIALS,
    NEW_VALUES,
    VALUES,
    FORGET_VALUES,
];

pub(super) const RETENTION_TIME: &str = "UPDATE head SET retention_time = $1";
/// The commits, the head after them, and the row of the host with its mark and its next lease.
pub(super) const COMMITS: &str = "WITH added AS (INSERT INTO commits (position, hash, source, turn, number, conversation, record, run) \
    SELECT *, $8::int FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::uuid[], $5::bigint[], $6::text[], $7::bytea[])), \
    moved AS (UPDATE head SET position = $9, hash = $10) \
    UPDATE hosts SET position = $9, hash = $10, mark = $11, renewed_at = clock_timestamp(), \
    lease_until = clock_timestamp() + make_interval(secs => $13) WHERE name = $12";
pub(super) const OWNERS: &str =
    "INSERT INTO conversations (conversation, owner) SELECT * FROM unnest($1::text[], $2::text[])";
pub(super) const CALLS: &str =
    "INSERT INTO calls (conversation, id, turn) SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[])";
pub(super) const DUE: &str = "INSERT INTO unfinished_turns (turn, due_at, running) \
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::boolean[]) \
    ON CONFLICT (turn) DO UPDATE SET due_at = excluded.due_at, running = excluded.running";
pub(super) const ENDED_UNFINISHED: &str = "DELETE FROM unfinished_turns WHERE turn = ANY ($1)";
pub(super) const ENDED: &str = "INSERT INTO ended_turns (turn, ended_at, position, ending, conversation, caller, bytes, record) \
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::bytea[]) \
    ON CONFLICT (turn) DO UPDATE SET ended_at = excluded.ended_at, position = excluded.position, ending = excluded.ending, \
    conversation = excluded.conversation, caller = excluded.caller, bytes = excluded.bytes, record = excluded.record";
pub(super) const SUSPENSIONS: &str = "INSERT INTO suspensions (id, conversation, caller, tool, kind, is_open, ending, record, signal) \
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::smallint[], $6::boolean[], $7::bytea[], $8::bytea[], \
    $9::text[]) \
    ON CONFLICT (id) DO UPDATE SET conversation = excluded.conversation, caller = excluded.caller, tool = excluded.tool, \
    kind = excluded.kind, is_open = excluded.is_open, ending = excluded.ending, record = excluded.record, \
    signal = excluded.signal";
pub(super) const FORGET_ENDED_BY: &str = "DELETE FROM suspensions_ended_by WHERE suspension = ANY ($1)";
pub(super) const ENDED_BY: &str = "INSERT INTO suspensions_ended_by (principal, kind, suspension) \
    SELECT * FROM unnest($1::text[], $2::smallint[], $3::uuid[]) ON CONFLICT DO NOTHING";
pub(super) const AUDIENCES: &str = "INSERT INTO audiences (digest, waiting, record) \
    SELECT * FROM unnest($1::bytea[], $2::bigint[], $3::bytea[]) \
    ON CONFLICT (digest) DO UPDATE SET waiting = audiences.waiting + excluded.waiting";
pub(super) const COUNTS: &str = "INSERT INTO audience_counts (scope, tool, audience, waiting) \
    SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[]) \
    ON CONFLICT (scope, tool, audience) DO UPDATE SET waiting = audience_counts.waiting + excluded.waiting";
pub(super) const FORGET_COUNTS: &str = "DELETE FROM audience_counts WHERE ctid = ANY (ARRAY(SELECT place \
    FROM unnest($1::text[], $2::text[], $3::bytea[]) \
    AS changed (scope, tool, audience) CROSS JOIN LATERAL (SELECT ctid AS place FROM audience_counts AS kept \
    WHERE kept.scope = changed.scope AND kept.tool = changed.tool AND kept.audience = changed.audience \
    AND kept.waiting <= 0 LIMIT 1) AS found))";
pub(super) const FORGET_AUDIENCES: &str = "DELETE FROM audiences WHERE digest = ANY ($1) AND waiting <= 0";
pub(super) const WAITING: &str = "INSERT INTO waiting (suspension, audience, conversation, caller, tool) \
    SELECT * FROM unnest($1::uuid[], $2::bytea[], $3::text[], $4::text[], $5::text[]) \
    ON CONFLICT (suspension) DO UPDATE SET audience = excluded.audience, conversation = excluded.conversation, \
    caller = excluded.caller, tool = excluded.tool";
pub(super) const FORGET_WAITING: &str = "DELETE FROM waiting WHERE suspension = ANY ($1)";
pub(super) const KEPT_MORE: &str = "INSERT INTO kept (principal, bytes) SELECT * FROM unnest($1::text[], $2::bigint[]) \
    ON CONFLICT (principal) DO UPDATE SET bytes = kept.bytes + excluded.bytes";
pub(super) const KEPT_LESS: &str = "UPDATE kept SET bytes = greatest(kept.bytes + changed.bytes, 0) \
    FROM unnest($1::text[], $2::bigint[]) AS changed (principal, bytes) \
    WHERE kept.principal = changed.principal AND kept.principal = ANY ($1)";
pub(super) const OPEN: &str = "INSERT INTO open_turns (principal, turns, bytes, suspensions) \
    SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) ON CONFLICT (principal) DO UPDATE \
    SET turns = open_turns.turns + excluded.turns, bytes = open_turns.bytes + excluded.bytes, \
    suspensions = open_turns.suspensions + excluded.suspensions";
pub(super) const FORGET_OPEN: &str =
    "DELETE FROM open_turns WHERE principal = ANY ($1) AND turns = 0 AND bytes = 0 AND suspensions = 0";
pub(super) const DELIVERIES: &str = "INSERT INTO deliveries (is_about_turn, subject, number, webhook, next_at, record) \
    SELECT * FROM unnest($1::boolean[], $2::uuid[], $3::bigint[], $4::text[], $5::bigint[], $6::bytea[]) \
    ON CONFLICT (is_about_turn, subject, number, webhook) DO UPDATE SET next_at = excluded.next_at, record = excluded.record";
pub(super) const FORGET_RUN_LOGS: &str = "DELETE FROM run_logs WHERE turn = ANY ($1)";
pub(super) const FORGET_JOURNALS: &str = "DELETE FROM journals WHERE turn = ANY ($1)";
pub(super) const RUN_LOGS: &str = "INSERT INTO run_logs (turn, call, run, written, record) \
    SELECT * FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::bigint[], $5::bytea[]) \
    ON CONFLICT (turn, call, run) DO UPDATE SET written = excluded.written, record = excluded.record";
pub(super) const JOURNALS: &str = "INSERT INTO journals (turn, call, run, length) \
    SELECT * FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::bigint[]) \
    ON CONFLICT (turn, call) DO UPDATE SET run = excluded.run, length = excluded.length";
pub(super) const ENTRIES: &str = "INSERT INTO journal_entries (turn, call, number, record) \
    SELECT * FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::bytea[])";
pub(super) const STANDINGS: &str = "INSERT INTO standing_approvals (id, used, revoked_by, revoked_at, record) \
    SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::bigint[], $5::bytea[]) \
    ON CONFLICT (id) DO UPDATE SET used = excluded.used, revoked_by = excluded.revoked_by, \
    revoked_at = excluded.revoked_at, record = excluded.record";
pub(super) const FORGET_STANDINGS: &str = "DELETE FROM standing_approvals WHERE id = ANY ($1)";
pub(super) const DENIALS: &str = "INSERT INTO denials (conversation, alike, denied_at) \
    SELECT * FROM unnest($1::text[], $2::bytea[], $3::bigint[]) \
    ON CONFLICT (conversation, alike) DO UPDATE SET denied_at = excluded.denied_at";
pub(super) const FORGET_DENIALS: &str = "DELETE FROM denials WHERE ctid = ANY (ARRAY(SELECT place FROM unnest($1::text[], $2::bytea[]) \
    AS changed (conversation, alike) CROSS JOIN LATERAL (SELECT ctid AS place FROM denials AS kept \
    WHERE kept.conversation = changed.conversation AND kept.alike = changed.alike LIMIT 1) AS found))";
pub(super) const NEW_VALUES: &str =
    "INSERT INTO plugin_values (key, value) SELECT * FROM unnest($1::bytea[], $2::bytea[])";
pub(super) const VALUES: &str = "UPDATE plugin_values SET value = changed.value, write = NULL \
    FROM unnest($1::bytea[], $2::bytea[]) AS changed (key, value) \
    WHERE plugin_values.key = changed.key AND plugin_values.key = ANY ($1)";
pub(super) const FORGET_VALUES: &str = "DELETE FROM plugin_values WHERE key = ANY ($1)";
