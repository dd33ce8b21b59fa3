//! Fills an empty database from the portable form of a store (`portable.rs`), in one transaction. It has the lock of the head, so a
//! host that starts meanwhile waits, and finds all of it or nothing.

use std::collections::BTreeMap;
use std::io::{self, BufRead};

use dispatch::ports::{Commit, DeliveryRow, Footprint, Head, RowChange, Source, StoreFault, Walk};
use domain::{CallId, ConversationId, PrincipalId, Timestamp, Turn, TurnId};
use tokio_postgres::Row;
use uuid::Uuid;

use super::connect::Connector;
use super::plan::Plan;
use super::reads::Reader;
use super::rows::{self, column, decode, of_turn, signed, turn, unsigned};
use super::session::{Failure, Session, column_of};
use super::settings::PostgresSettings;
use super::state::{EndedRow, EntryRow, JournalHead, RunLogRow, State};
use super::write::write_rows;
use crate::portable::bounds::{self, Events, PER_RECORD};
use crate::portable::{
    self, CommitItem, Content, EntryItem, ImportError, Item, Key, LineReader, Moved, Shared, damaged, same_head,
};
use crate::record;

/// The operation that fails.
const IMPORT: &str = "import a store";

/// A host that starts meanwhile waits for this lock.
const LOCK: &str = "SELECT position FROM head FOR UPDATE";
const HOSTS: &str = "SELECT name FROM hosts WHERE lease_until > clock_timestamp() ORDER BY name LIMIT 1";
/// A host that comes back finds that it has ended.
const FORGET_HOSTS: &str = "DELETE FROM hosts";
const COMMITS: &str = "INSERT INTO commits (position, hash, source, turn, number, conversation, record, digest, removed_by) \
    SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::text[], $4::uuid[], $5::bigint[], $6::text[], $7::bytea[], $8::bytea[], \
    $9::bigint[])";
const KNOWN_CALLS: &str = "SELECT conversation, id FROM calls \
    JOIN unnest($1::text[], $2::text[]) AS new (conversation, id) USING (conversation, id)";
const KNOWN_ENDS: &str = "SELECT turn FROM ended_turns WHERE turn = ANY ($1)";
const DOCUMENT: &str = "INSERT INTO documents (name, body) VALUES ($1, $2)";
const COMPONENT: &str =
    "INSERT INTO components (digest, bytes, record, last_live) VALUES ($1, $2, $3, clock_timestamp())";
const HEAD: &str = "UPDATE head SET position = $1, hash = $2";
const TURNS: &str = "SELECT turn, (SELECT sum(octet_length(record) + $2::bigint) FROM commits AS log WHERE source = 'turn' \
    AND log.turn = commits.turn)::bigint AS bytes FROM commits WHERE source = 'turn' AND number = 0 AND record IS NOT NULL \
    AND turn > $1 AND NOT EXISTS (SELECT FROM ended_turns WHERE ended_turns.turn = commits.turn) ORDER BY turn LIMIT 64";
const LOGS: &str = "SELECT turn, record FROM commits WHERE source = 'turn' AND turn = ANY ($1) ORDER BY turn, number";
const JOURNALS: &str =
    "SELECT coalesce(sum(octet_length(record)), 0)::bigint AS bytes FROM journal_entries WHERE turn = $1";
const KEPT: &str =
    "INSERT INTO kept (principal, bytes) SELECT caller, sum(bytes)::bigint FROM ended_turns GROUP BY caller";

/// The trigger would change the row of a namespace for each value, and each change in a transaction makes the next one slower.
const WITHOUT_TRIGGER: &str = "ALTER TABLE plugin_values DISABLE TRIGGER count_values";
const WITH_TRIGGER: &str = "ALTER TABLE plugin_values ENABLE TRIGGER count_values";
/// As the migration to format 4 does it.
const USAGE: &str = "INSERT INTO plugin_usage (namespace, bytes, keys) \
    SELECT substr(key, 3, named), sum(octet_length(key) - named - 4 + octet_length(value)), count(*) \
    FROM (SELECT key, value, get_byte(key, 0) * 256 + get_byte(key, 1) AS named FROM plugin_values) AS entries GROUP BY 1";

/// The tables that are empty in a new database, and what they have.
const TABLES: [(&str, &str); 5] = [
    ("commits", "commits"),
    ("conversations", "conversations"),
    ("plugin_values", "data of plugins"),
    ("documents", "tokens"),
    ("components", "components"),
];

/// The rows that are written at once, and their bytes.
const ROWS_AT_ONCE: usize = 1_000;
const BYTES_AT_ONCE: u64 = 8 << 20;

/// The entries of the audit that are verified at once.
const VERIFIED_AT_ONCE: usize = 1_000;

/// Fills an empty database that no host uses. After an error or a kill, it is empty. No record has more than `max_record` bytes. `check`
/// refuses what hosts on the database could not use.
///
/// # Errors
/// [`ImportError`].
pub async fn import(
    settings: &PostgresSettings,
    max_record: usize,
    input: &mut dyn BufRead,
    check: &dyn Fn(&Shared) -> io::Result<()>,
) -> Result<Moved, ImportError> {
    let mut lines = LineReader::begin(input, max_record)?;
    let connector = Connector::new(settings, Vec::new())?;
    connector.check().await?;
    let session = connector.long_session().await?;
    match imported(&session, &mut lines, check).await {
        Ok(()) => commit(Reader::on(session, IMPORT), lines.moved()).await,
        Err(error) => {
            session.close();
            Err(error)
        }
    }
}

async fn imported(
    session: &Session,
    lines: &mut LineReader<'_>,
    check: &dyn Fn(&Shared) -> io::Result<()>,
) -> Result<(), ImportError> {
    session.run("BEGIN").await.map_err(program)?;
    session.query(LOCK, &[]).await.map_err(program)?;
    if let Some(host) = session.query(HOSTS, &[]).await.map_err(program)?.first() {
        return Err(ImportError::InUse { host: column(host, "name")? });
    }
    for (table, content) in TABLES {
        let found = format!("SELECT EXISTS (SELECT FROM {table}) AS is_there");
        let found = session.query(&found, &[]).await.map_err(program)?;
        let is_there = found.first().map(|row| column(row, "is_there")).transpose()?;
        if is_there != Some(false) {
            return Err(ImportError::NotEmpty { target: "the database".to_owned(), content: content.to_owned() });
        }
    }
    session.execute(FORGET_HOSTS, &[]).await.map_err(program)?;
    session.run(WITHOUT_TRIGGER).await.map_err(program)?;
    let mut import = Import::new(session);
    while let Some(item) = lines.next()? {
        match item {
            Item::Shared(shared) => {
                check(&shared).map_err(|error| lines.damaged(error.to_string()))?;
                keep(session, shared).await.map_err(program)?;
            }
            item => import.item(item, lines.moved().lines)?,
        }
        if import.rows >= ROWS_AT_ONCE || import.bytes >= BYTES_AT_ONCE {
            import.write().await?;
        }
    }
    import.write().await?;
    import.open_turns(lines.max_memory()).await?;
    session.execute(USAGE, &[]).await.map_err(program)?;
    session.run(WITH_TRIGGER).await.map_err(program)?;
    let Head { position, hash } = lines.head();
    let hash = hash.as_bytes().as_slice();
    session.execute(HEAD, &[&signed(position.0), &hash]).await.map_err(program)?;
    Ok(())
}

/// Verifies the audit as the database has it, and commits.
async fn commit(reader: Reader, moved: Moved) -> Result<Moved, ImportError> {
    let mut walk = Walk::new(Vec::new());
    loop {
        let entries = reader.chain(walk.head().position, VERIFIED_AT_ONCE).await?;
        for entry in &entries {
            walk.step(entry).map_err(ImportError::Unverified)?;
        }
        if entries.is_empty() {
            break;
        }
    }
    let found = walk.end(reader.head().await?).map_err(ImportError::Unverified)?;
    same_head(moved.head, found)?;
    reader.query("COMMIT", &[]).await.map_err(ImportError::Unanswered)?;
    Ok(moved)
}

async fn keep(session: &Session, shared: Shared) -> Result<(), Failure> {
    let done = match shared {
        Shared::Document { name, body } => session.execute(DOCUMENT, &[&name, &body]).await,
        Shared::Component { digest, bytes, record } => {
            session.execute(COMPONENT, &[&digest.as_bytes().as_slice(), &bytes, &record]).await
        }
    };
    done.map(drop)
}

fn program(failure: Failure) -> ImportError {
    ImportError::Store(failure.into())
}

struct Import<'a> {
    session: &'a Session,
    commits: Vec<CommitItem>,
    state: State,
    /// The call ids and the ended turns of the batch, each with its line. The order of the lines does not show that one is there twice.
    calls: BTreeMap<(ConversationId, CallId), u64>,
    ended: BTreeMap<TurnId, (Timestamp, u64)>,
    rows: usize,
    bytes: u64,
}

impl<'a> Import<'a> {
    fn new(session: &'a Session) -> Self {
        let (calls, ended) = (BTreeMap::new(), BTreeMap::new());
        Self { session, commits: Vec::new(), state: State::default(), calls, ended, rows: 0, bytes: 0 }
    }
}

impl Import<'_> {
    fn item(&mut self, item: Item, line: u64) -> Result<(), ImportError> {
        self.new_keys(&item, line)?;
        let state = &mut self.state;
        self.rows += 1;
        self.bytes += size(&item);
        match item {
            Item::RetentionTime(at) => state.added.retention_time = Some(at),
            Item::Commit(commit) => self.commits.push(commit),
            Item::Owner(conversation, owner) => state.owners.put(conversation, owner),
            Item::Call(conversation, id, turn) => state.calls.put((conversation, id), turn),
            Item::Suspension(suspension) => state.suspensions.put(suspension.row.id, recorded(suspension)),
            Item::Ended { position, end, bytes, ended } => {
                let row = EndedRow { ended: ended.row, end, position, bytes, record: ended.record };
                state.ended.put(row.ended.turn, row);
            }
            Item::Standing(standing) => state.standings.put(standing.row.standing.id, standing.row),
            Item::Denial(denial) => state.denials.put((denial.conversation, denial.alike), denial.at),
            Item::Delivery(delivery) => {
                let DeliveryRow { report, webhook, .. } = &delivery.row;
                let key = (report.subject(), report.number(), webhook.clone());
                state.deliveries.put(key, recorded(delivery));
            }
            Item::RunLog(log) => {
                let key = (log.row.turn, log.row.call, log.row.run);
                state.run_logs.put(key, RunLogRow { written: log.row.written, record: log.record });
            }
            Item::Journal { turn, call, run, length } => state.journals.put((turn, call), JournalHead { run, length }),
            Item::JournalEntry(EntryItem { turn, call, entry }) => {
                let (number, record) = (entry.row.number, entry.record);
                state.added.entries.push(EntryRow { turn, call, number, record });
            }
            Item::Value { key, value } => state.values.put(key, value),
            Item::Shared(_) => {}
        }
        Ok(())
    }

    /// Refuses keys that the batch has.
    fn new_keys(&mut self, item: &Item, line: u64) -> Result<(), ImportError> {
        let (conversation, calls) = match item {
            Item::Call(conversation, id, _) => (conversation, std::slice::from_ref(id)),
            Item::Commit(CommitItem { conversation: Some(of), content: Content::Record(_, calls), .. }) => {
                (of, &**calls)
            }
            Item::Ended { ended, .. } => {
                let (at, turn) = ended.row.key();
                return match self.ended.insert(turn, (at, line)) {
                    Some(_) => Err(damaged(line, Key::Ended(at, turn).repeated())),
                    None => Ok(()),
                };
            }
            _ => return Ok(()),
        };
        for id in calls {
            if self.calls.insert((conversation.clone(), id.clone()), line).is_some() {
                return Err(damaged(line, Key::call(conversation.clone(), id.clone()).repeated()));
            }
        }
        Ok(())
    }

    /// Refuses keys that an earlier batch has.
    async fn unknown_keys(&mut self) -> Result<(), ImportError> {
        let (calls, ended) = (std::mem::take(&mut self.calls), std::mem::take(&mut self.ended));
        if !calls.is_empty() {
            let (conversations, ids): (Vec<_>, Vec<_>) =
                calls.keys().map(|(of, id)| (of.as_str(), id.as_str())).unzip();
            let known = self.session.query(KNOWN_CALLS, &[&conversations, &ids]).await.map_err(program)?;
            if let Some(row) = known.first() {
                let id = column::<&str>(row, "id")?.parse::<CallId>().map_err(|_| rows::damaged("a call id"))?;
                let call = (rows::conversation(row)?, id);
                let line = calls.get(&call).copied().unwrap_or_default();
                return Err(damaged(line, Key::call(call.0, call.1).repeated()));
            }
        }
        if !ended.is_empty() {
            let turns: Vec<_> = ended.keys().copied().map(of_turn).collect();
            let known = self.session.query(KNOWN_ENDS, &[&turns]).await.map_err(program)?;
            let known = known.first().map(|row| turn(row, "turn")).transpose()?;
            if let Some((turn, (at, line))) = known.and_then(|turn| ended.get_key_value(&turn)) {
                return Err(damaged(*line, Key::Ended(*at, *turn).repeated()));
            }
        }
        Ok(())
    }

    /// Writes what has come.
    async fn write(&mut self) -> Result<(), ImportError> {
        self.unknown_keys().await?;
        self.write_batch().await.map_err(program)
    }

    async fn write_batch(&mut self) -> Result<(), Failure> {
        (self.rows, self.bytes) = (0, 0);
        let commits = std::mem::take(&mut self.commits);
        let mut state = std::mem::take(&mut self.state);
        for commit in &commits {
            if let (Content::Record(_, calls), Source::Turn { turn, .. }) = (&commit.content, commit.source) {
                let keys = calls.iter().zip(&commit.conversation).map(|(id, of)| (of.clone(), id.clone()));
                keys.for_each(|key| state.calls.put(key, turn));
            }
        }
        state.end(true);
        if !commits.is_empty() {
            self.write_commits(&commits).await?;
        }
        write_rows(self.session, &state).await
    }

    async fn write_commits(&self, commits: &[CommitItem]) -> Result<(), Failure> {
        let of_turn = |commit: &CommitItem| match commit.source {
            Source::Turn { turn, number } => Some((rows::of_turn(turn), i64::from(number))),
            _ => None,
        };
        let removed = |commit: &CommitItem| match &commit.content {
            Content::Removed { digest, by } => Some((digest.as_bytes().to_vec(), signed(by.0))),
            Content::Record(..) => None,
        };
        let record = |commit: &CommitItem| match &commit.content {
            Content::Record(record, _) => Some(record.clone()),
            Content::Removed { .. } => None,
        };
        let columns = [
            column_of(commits, |commit| signed(commit.head.position.0)),
            column_of(commits, |commit| commit.head.hash.as_bytes().to_vec()),
            column_of(commits, |commit| rows::source(commit.source)),
            column_of(commits, |commit| of_turn(commit).map(|(turn, _)| turn)),
            column_of(commits, |commit| of_turn(commit).map(|(_, number)| number)),
            column_of(commits, |commit| commit.conversation.as_ref().map(ToString::to_string)),
            column_of(commits, record),
            column_of(commits, |commit| removed(commit).map(|(digest, _)| digest)),
            column_of(commits, |commit| removed(commit).map(|(_, by)| by)),
        ];
        let columns: Vec<_> = columns.iter().map(|column| &**column as _).collect();
        self.session.execute(COMMITS, &columns).await.map(drop)
    }

    /// Makes the rows that follow from the logs of open turns, and the usage of all.
    async fn open_turns(&mut self, max: u64) -> Result<(), ImportError> {
        self.session.execute(KEPT, &[]).await.map_err(program)?;
        let mut after = Uuid::nil();
        loop {
            let page = self.session.query(TURNS, &[&after, &signed(PER_RECORD)]).await.map_err(program)?;
            let turns = at_once(&page, max)?;
            let Some(last) = turns.last() else { return Ok(()) };
            after = *last;
            let rows = self.session.query(LOGS, &[&turns]).await.map_err(program)?;
            let mut logs = BTreeMap::<TurnId, Vec<&Row>>::new();
            for row in &rows {
                logs.entry(turn(row, "turn")?).or_default().push(row);
            }
            for (turn, log) in logs {
                self.open_turn(turn, &log, max).await?;
            }
            self.write().await?;
        }
    }

    async fn open_turn(&mut self, turn: TurnId, log: &[&Row], max: u64) -> Result<(), ImportError> {
        let (mut events, mut bytes) = (Events::default(), 0);
        for row in log {
            let record: &[u8] = column(row, "record")?;
            bytes += record.len() as u64;
            events.add(turn, record, decode(record, record::read_events, || "a log".to_owned())?, max)?;
        }
        let events = events.all;
        let Some(turn) = Turn::replay(&events) else { return Ok(()) };
        let journals = self.session.query(JOURNALS, &[&of_turn(turn.id)]).await.map_err(program)?;
        let journals = journals.first().map(|row| column(row, "bytes")).transpose()?.map_or(0, unsigned);
        let caller: PrincipalId = turn.caller.clone();
        let derived = dispatch::index_rows(&events, &turn).into_iter();
        let derived = derived.filter(|row| matches!(row, RowChange::Due { .. } | RowChange::Audience(_)));
        let (principal, less) = (caller.clone(), Footprint::default());
        let open = RowChange::Open { principal, less, more: Footprint::of(&turn) };
        let plan = Plan::of(Commit::rows(derived.chain([open]).collect()))?;
        self.state.commit(&plan).map_err(|error| StoreFault::of_program(IMPORT, error.to_string()))?;
        self.state.added.kept.push((caller, signed(bytes + journals)));
        Ok(())
    }
}

/// The first turns of a page, with not many more bytes than are written at once. The records of each have at most `max` bytes together.
fn at_once(page: &[Row], max: u64) -> Result<Vec<Uuid>, ImportError> {
    let (mut turns, mut bytes) = (Vec::new(), 0_u64);
    for row in page {
        let (turn, of_log) = (turn(row, "turn")?, unsigned(column(row, "bytes")?));
        if of_log > max {
            return Err(ImportError::LargeTurn { turn, max });
        }
        bytes = bytes.saturating_add(of_log);
        if !turns.is_empty() && bytes > BYTES_AT_ONCE {
            break;
        }
        turns.push(of_turn(turn));
    }
    Ok(turns)
}

fn recorded<T>(of: portable::Recorded<T>) -> super::state::Recorded<T> {
    super::state::Recorded { row: of.row, record: of.record }
}

/// About as many bytes as an item adds to a batch. Of commits, only the bytes are kept.
fn size(item: &Item) -> u64 {
    let record = match item {
        Item::Commit(CommitItem { content: Content::Record(record, _), .. }) => return record.len() as u64,
        Item::Value { key, value } => return (key.len() + value.len()) as u64,
        Item::Suspension(portable::Recorded { record, .. }) => record,
        Item::Ended { ended, .. } => &ended.record,
        Item::Standing(standing) => &standing.record,
        Item::Delivery(delivery) => &delivery.record,
        Item::RunLog(log) => &log.record,
        Item::JournalEntry(entry) => &entry.entry.record,
        Item::Commit(_)
        | Item::Shared(_)
        | Item::RetentionTime(_)
        | Item::Owner(..)
        | Item::Call(..)
        | Item::Denial(_)
        | Item::Journal { .. } => return 0,
    };
    bounds::memory(record)
}
