//! The keys of the tree of commits. Numbers are big-endian, so keys sort in the order of their numbers.
//!
//! | key | value |
//! |---|---|
//! | `e` turn(16) number(4) | stamp, record of the events of the turn's commit with this number |
//! | `f` length(1) conversation position(8) | turn(16) number(4): the commit at this position of the feed |
//! | `h` position(8) | record of the plugin event |
//! | `E` position(8) | the end of a turn, which the commit at this position ended (`feeds.rs`) |
//! | `F` length(1) caller position(8) | the same, of the turns of this caller |
//! | `n` position(8) | record of the start of a host |
//! | `v` conversation | stamp, name of the principal that owns the conversation |
//! | `c` length(1) conversation call-id | stamp, turn(16) |
//! | `d` time(8) turn(16) | running(1): the turn is due at this time |
//! | `u` turn(16) | time(8) running(1): the turn has not ended, and this is its entry under `d` |
//! | `s` suspension(16) | stamp, record of the row |
//! | `b` open(1) selection kind(1) suspension(16) | empty: the suspension belongs to the selection (`inbox.rs`) |
//! | `B` selection 1 length(1) principal kind(1) suspension(16) | empty: the principal ended the suspension, which belongs to the selection (`inbox.rs`) |
//! | `B` selection 0 digest(32) kind(1) suspension(16) | empty: the suspension has this end, and belongs to the selection |
//! | `j` selection digest(32) | stamp, count(8), record of the audience: the number of open suspensions of the selection that have it |
//! | `J` selection digest(32) suspension(16) | empty: the suspension is one of those that this entry under `j` counts |
//! | `K` principal | stamp, bytes(8): the size of the records and journals of the principal's turns, and of the logs of ended ones |
//! | `y` suspension or turn(16) number(4) webhook | stamp, record of the delivery; the number identifies the event |
//! | `z` length(1) webhook time(8) suspension(16) number(4) | empty: the next attempt is at this time |
//! | `L` turn(16) call(2) run(4) | stamp, number of written lines(8), record of the log of the run |
//! | `N` turn(16) call(2) | stamp, run(4) length(4) bytes(8): the run that may append to the journal of the call (0: none), the number of its entries, and the part of their size under `K`; no bytes: none of it |
//! | `M` turn(16) call(2) number(4) | stamp, record of the entry of the journal |
//! | `r` position(8) | record of the end of a standing approval |
//! | `g` standing(16) | stamp, record of the standing approval when it was given |
//! | `t` standing(16) | stamp, uses(4) used(4); after a revocation also: time(8) name |
//! | `x` length(1) conversation digest(32) | stamp, time(8): a person denied the call of this digest |
//! | `p` position(8) | record of a removal of turns |
//! | `i` time(8) turn(16) | stamp, bytes(8), record of the ended turn; the bytes are the size of its records |
//! | `W` turn(16) | stamp, length(1) conversation, position(8) digest(32) of each record: the commit of the stamp removed the turn |
//! | `W` turn(16) number(4) | the same, of the records from this number on (`remains.rs`) |
//! | `l` digest(32) key | empty: the value under this key refers, or referred, to the blob of the digest |
//! | `a` position(8) | hash(32), source: an entry of the audit chain, and the location of its record |
//! | `m` name | metadata of the store |
//!
//! The records under `e`, `h`, `n`, `r` and `p` hold the facts, and the audit chain covers them. All other entries are
//! derived from these records, except the state of deliveries, the logs of runs, the journals and the entries under `W`. A removal
//! replaces all records of a turn under `e` by one entry under `W` (`remains.rs`).
//!
//! A stamp is the position of the commit that wrote the value, in 8 bytes. Keys contain the names of conversations and
//! not their hashes. A length precedes each name that more bytes follow, so a prefix for one name never matches the
//! keys of another name.

use dispatch::ports::{DeliveryRow, Denial, Head, Position, Report, Source, Subject, TURN_SETTLED};
use domain::{
    CallId, CallIndex, ConversationId, Digest, PrincipalId, StandingId, SuspensionId, Timestamp, TurnId, effect::Due,
    standing::StandingRow,
};

pub(super) const LOG: u8 = b'e';
pub(super) const FEED: u8 = b'f';
pub(super) const HOST_FEED: u8 = b'h';
pub(super) const ENDS: u8 = b'E';
pub(super) const ENDS_OF: u8 = b'F';
pub(super) const STARTED: u8 = b'n';
pub(super) const OWNER: u8 = b'v';
pub(super) const CALL: u8 = b'c';
pub(super) const DUE: u8 = b'd';
pub(super) const UNFINISHED: u8 = b'u';
pub(super) const SUSPENSION: u8 = b's';
pub(super) const SELECTED: u8 = b'b';
pub(super) const CLOSED: u8 = b'B';
pub(super) const AUDIENCE: u8 = b'j';
pub(super) const WAITING: u8 = b'J';
pub(super) const KEPT: u8 = b'K';
pub(super) const DELIVERY: u8 = b'y';
pub(super) const TO_DELIVER: u8 = b'z';
pub(super) const RUN_LOG: u8 = b'L';
pub(super) const JOURNAL: u8 = b'N';
pub(super) const JOURNAL_ENTRY: u8 = b'M';
pub(super) const REVOKED: u8 = b'r';
pub(super) const STANDING: u8 = b'g';
pub(super) const STANDING_STATE: u8 = b't';
pub(super) const DENIED: u8 = b'x';
pub(super) const AUDIT: u8 = b'a';
pub(super) const REMOVAL: u8 = b'p';
pub(super) const ENDED: u8 = b'i';
pub(super) const REMOVED: u8 = b'W';
/// The removed turns until format 4. The value is a stamp and the conversation.
pub(super) const REMOVED_BEFORE: u8 = b'w';
pub(super) const BLOB: u8 = b'l';

/// The version of the key format.
pub(super) const FORMAT: &[u8] = b"mformat";
/// The time that retention goes by, after a stamp.
pub(super) const RETENTION_TIME: &[u8] = b"mretention";
/// Exists while a migration changes entries that older formats need (`migrate.rs`).
pub(super) const FOLDING: &[u8] = b"mfolding";
/// The head of the audit chain: the last assigned position, and its hash.
pub(super) const HEAD: &[u8] = b"mhead";

/// Written to wake a flush. Its value has no meaning.
pub(super) const WOKEN: &[u8] = b"mwoken";

/// The length of a stamp in bytes.
pub(super) const STAMP: usize = 8;

/// The size of a count in front of the record.
pub(super) const COUNT: usize = 8;

/// A key and its value.
pub(super) type Entry = (Vec<u8>, Vec<u8>);

pub(super) fn log(turn: TurnId, number: u32) -> Vec<u8> {
    join(&[&[LOG], &turn.bits().to_be_bytes(), &number.to_be_bytes()])
}

pub(super) fn log_of(turn: TurnId) -> Vec<u8> {
    join(&[&[LOG], &turn.bits().to_be_bytes()])
}

/// The prefix of a conversation's feed, before the position.
pub(super) fn feed(conversation: &ConversationId) -> Vec<u8> {
    named(FEED, conversation.as_str().as_bytes())
}

/// The prefix of the ends of a caller's turns, before the position.
pub(super) fn ends_of(caller: &PrincipalId) -> Vec<u8> {
    named(ENDS_OF, caller.as_str().as_bytes())
}

pub(super) fn owner(conversation: &ConversationId) -> Vec<u8> {
    join(&[&[OWNER], conversation.as_str().as_bytes()])
}

pub(super) fn call(conversation: &ConversationId, call: &CallId) -> Vec<u8> {
    let mut key = named(CALL, conversation.as_str().as_bytes());
    key.extend_from_slice(call.as_str().as_bytes());
    key
}

/// Decodes a key from [`call`]: the conversation and the call id.
pub(super) fn read_call(key: &[u8]) -> Option<(&str, &str)> {
    let (&[_, length], rest) = key.split_first_chunk::<2>()?;
    let (conversation, call) = rest.split_at_checked(usize::from(length))?;
    Some((std::str::from_utf8(conversation).ok()?, std::str::from_utf8(call).ok()?))
}

pub(super) fn due(at: Timestamp, turn: TurnId) -> Vec<u8> {
    join(&[&[DUE], &at.millis().to_be_bytes(), &turn.bits().to_be_bytes()])
}

pub(super) fn unfinished(turn: TurnId) -> Vec<u8> {
    join(&[&[UNFINISHED], &turn.bits().to_be_bytes()])
}

/// The key of a suspension's row.
pub(super) fn suspension(id: SuspensionId) -> Vec<u8> {
    join(&[&[SUSPENSION], &id.bits().to_be_bytes()])
}

/// The prefix of the deliveries about a suspension or a turn, before the number of the event. Also of the deliveries about
/// the other one, if it had the same bits: [`subject_of_delivery`] tells them apart.
pub(super) fn deliveries_of(subject: Subject) -> Vec<u8> {
    let bits = match subject {
        Subject::Suspension(id) => id.bits(),
        Subject::Turn(id) => id.bits(),
    };
    join(&[&[DELIVERY], &bits.to_be_bytes()])
}

/// The key of the delivery of one event to one webhook.
pub(super) fn delivery(subject: Subject, number: u32, webhook: &str) -> Vec<u8> {
    join(&[&deliveries_of(subject), &number.to_be_bytes(), webhook.as_bytes()])
}

/// Decodes the subject in a key from [`delivery`].
pub(super) fn subject_of_delivery(key: &[u8]) -> Option<Subject> {
    read_subject(key.get(1..)?).map(|(subject, ..)| subject)
}

/// The subject and the number at the beginning of these bytes, and the bytes after them.
fn read_subject(bytes: &[u8]) -> Option<(Subject, u32, &[u8])> {
    let (id, rest) = bytes.split_first_chunk::<16>()?;
    let (number, rest) = rest.split_first_chunk::<4>()?;
    let (bits, number) = (u128::from_be_bytes(*id), u32::from_be_bytes(*number));
    let subject = match number {
        TURN_SETTLED => Subject::Turn(TurnId::from_bits(bits)),
        _ => Subject::Suspension(SuspensionId::from_bits(bits)),
    };
    Some((subject, number, rest))
}

/// The prefix of the pending deliveries to a webhook, before the time. Names of webhooks have the same length limit as
/// names of conversations.
pub(super) fn to_deliver(webhook: &str) -> Vec<u8> {
    named(TO_DELIVER, webhook.as_bytes())
}

pub(super) fn to_deliver_at(webhook: &str, next: Timestamp, report: Report) -> Vec<u8> {
    // The id and the number are as in the key of the delivery.
    let subject = deliveries_of(report.subject()).split_off(1);
    join(&[&to_deliver(webhook), &next.millis().to_be_bytes(), &subject, &report.number().to_be_bytes()])
}

/// The last possible key from [`to_deliver_at`] with this time.
pub(super) fn last_to_deliver_at(webhook: &str, next: Timestamp) -> Vec<u8> {
    join(&[&to_deliver(webhook), &next.millis().to_be_bytes(), &[u8::MAX; 20]])
}

/// The key of the pending entry of a delivery, if the delivery has a next attempt.
pub(super) fn next_delivery(row: &DeliveryRow) -> Option<Vec<u8>> {
    row.next().map(|next| to_deliver_at(&row.webhook, next, row.report))
}

/// Decodes a key from [`to_deliver_at`].
pub(super) fn read_to_deliver(key: &[u8]) -> Option<(&str, Timestamp, Subject, u32)> {
    let (&[_, length], rest) = key.split_first_chunk::<2>()?;
    let (webhook, rest) = rest.split_at_checked(usize::from(length))?;
    let (next, rest) = rest.split_first_chunk::<8>()?;
    let (subject, number, []) = read_subject(rest)? else { return None };
    let next = Timestamp::from_millis(u64::from_be_bytes(*next));
    Some((std::str::from_utf8(webhook).ok()?, next, subject, number))
}

/// The prefix of the logs of a call's runs.
pub(super) fn run_logs(turn: TurnId, call: CallIndex) -> Vec<u8> {
    join(&[&of_calls(RUN_LOG, turn), &call.0.to_be_bytes()])
}

pub(super) fn run_log(turn: TurnId, call: CallIndex, run: u32) -> Vec<u8> {
    join(&[&run_logs(turn, call), &run.to_be_bytes()])
}

/// The kinds of entries that belong to the calls of a turn, and go with it: the turn is in their keys. The heads of journals
/// come last, so that a head that was read counts each entry that was read.
pub(super) const OF_CALLS: [u8; 3] = [RUN_LOG, JOURNAL_ENTRY, JOURNAL];

/// The prefix of the entries of this kind for a turn's calls.
pub(super) fn of_calls(kind: u8, turn: TurnId) -> Vec<u8> {
    join(&[&[kind], &turn.bits().to_be_bytes()])
}

/// Decodes the turn in a key under one of [`OF_CALLS`].
pub(super) fn turn_of_call(key: &[u8]) -> Option<TurnId> {
    call_of(key).map(|(turn, _)| turn)
}

/// Decodes the turn and the call in a key under one of [`OF_CALLS`].
pub(super) fn call_of(key: &[u8]) -> Option<(TurnId, CallIndex)> {
    let (turn, rest) = key.get(1..)?.split_first_chunk::<16>()?;
    let call = rest.first_chunk::<2>()?;
    Some((TurnId::from_bits(u128::from_be_bytes(*turn)), CallIndex(u16::from_be_bytes(*call))))
}

/// The key of a standing approval or of its usage.
pub(super) fn standing(index: u8, id: StandingId) -> Vec<u8> {
    join(&[&[index], &id.bits().to_be_bytes()])
}

pub(super) fn denied(conversation: &ConversationId, alike: Digest) -> Vec<u8> {
    let mut key = named(DENIED, conversation.as_str().as_bytes());
    key.extend_from_slice(alike.as_bytes());
    key
}

/// Decodes a denial from its key and its value. The value has no stamp.
pub(super) fn read_denial(key: &[u8], value: &[u8]) -> Option<Denial> {
    let (&[_, length], rest) = key.split_first_chunk::<2>()?;
    let (conversation, alike) = rest.split_at_checked(usize::from(length))?;
    Some(Denial {
        conversation: ConversationId::new(std::str::from_utf8(conversation).ok()?).ok()?,
        alike: Digest::from_bytes(alike.try_into().ok()?),
        at: Timestamp::from_millis(u64::from_be_bytes(value.try_into().ok()?)),
    })
}

/// The key of an ended turn.
pub(super) fn ended((at, turn): (Timestamp, TurnId)) -> Vec<u8> {
    join(&[&[ENDED], &at.millis().to_be_bytes(), &turn.bits().to_be_bytes()])
}

/// The key of a removed turn.
pub(super) fn removed(turn: TurnId) -> Vec<u8> {
    join(&[&[REMOVED], &turn.bits().to_be_bytes()])
}

/// The key of a removed turn until format 4.
pub(super) fn removed_before(turn: TurnId) -> Vec<u8> {
    join(&[&[REMOVED_BEFORE], &turn.bits().to_be_bytes()])
}

/// The prefix of the keys whose values refer to a blob.
pub(super) fn references(blob: Digest) -> Vec<u8> {
    join(&[&[BLOB], blob.as_bytes()])
}

/// The entry that says that the value under a key refers to a blob.
pub(super) fn reference(blob: Digest, key: &[u8]) -> Vec<u8> {
    join(&[&[BLOB], blob.as_bytes(), key])
}

/// Decodes a key from [`reference`].
pub(super) fn read_reference(key: &[u8]) -> Option<(Digest, &[u8])> {
    let (blob, of) = key.get(1..)?.split_first_chunk::<32>()?;
    Some((Digest::from_bytes(*blob), of))
}

/// The key of the size of a principal's records.
pub(super) fn kept(principal: &PrincipalId) -> Vec<u8> {
    join(&[&[KEPT], principal.as_str().as_bytes()])
}

/// The value of a standing approval's entry under [`STANDING_STATE`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StandingUsage {
    pub(super) uses: u32,
    pub(super) used: u32,
    /// The time of the revocation, and the name of the principal who revoked it.
    pub(super) revoked: Option<(Timestamp, String)>,
}

impl StandingUsage {
    pub(super) fn of(row: &StandingRow) -> Self {
        let revoked = row.revoked.as_ref().map(|(by, at)| (*at, by.to_string()));
        Self { uses: row.standing.uses, used: row.used, revoked }
    }

    /// The value under [`STANDING_STATE`], without its stamp.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut value = join(&[&self.uses.to_be_bytes(), &self.used.to_be_bytes()]);
        if let Some((at, by)) = &self.revoked {
            value.extend_from_slice(&at.millis().to_be_bytes());
            value.extend_from_slice(by.as_bytes());
        }
        value
    }

    /// Decodes a value from [`StandingUsage::to_bytes`].
    pub(super) fn from_bytes(value: &[u8]) -> Option<Self> {
        let (uses, rest) = value.split_first_chunk::<4>()?;
        let (used, rest) = rest.split_first_chunk::<4>()?;
        let revoked = match rest.split_first_chunk::<8>() {
            Some((at, by)) => {
                let at = Timestamp::from_millis(u64::from_be_bytes(*at));
                Some((at, std::str::from_utf8(by).ok()?.to_owned()))
            }
            None if rest.is_empty() => None,
            None => return None,
        };
        Some(Self { uses: u32::from_be_bytes(*uses), used: u32::from_be_bytes(*used), revoked })
    }
}

/// Appends a position to a key prefix.
pub(super) fn at(prefix: &[u8], position: Position) -> Vec<u8> {
    join(&[prefix, &position.0.to_be_bytes()])
}

/// The value under [`UNFINISHED`].
pub(super) fn due_value(due: Due) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = due.at.millis().to_be_bytes();
    [a, b, c, d, e, f, g, h, u8::from(due.running)]
}

/// Decodes a value from [`due_value`].
pub(super) fn read_due(value: &[u8]) -> Option<Due> {
    let (at, running) = value.split_first_chunk::<8>()?;
    let &[running @ (0 | 1)] = running else { return None };
    Some(Due { at: Timestamp::from_millis(u64::from_be_bytes(*at)), running: running == 1 })
}

/// The value under [`FEED`].
pub(super) fn pointer(turn: TurnId, number: u32) -> Vec<u8> {
    join(&[&turn.bits().to_be_bytes(), &number.to_be_bytes()])
}

/// Decodes a value from [`pointer`].
pub(super) fn read_pointer(value: &[u8]) -> Option<(TurnId, u32)> {
    let (turn, number) = value.split_first_chunk::<16>()?;
    Some((TurnId::from_bits(u128::from_be_bytes(*turn)), u32::from_be_bytes(number.try_into().ok()?)))
}

/// Decodes the number at the end of a key or a value.
pub(super) fn tail_u64(bytes: &[u8]) -> Option<u64> {
    bytes.last_chunk::<8>().map(|tail| u64::from_be_bytes(*tail))
}

/// Decodes the id at the end of a key or a value.
pub(super) fn tail_u128(bytes: &[u8]) -> Option<u128> {
    bytes.last_chunk::<16>().map(|tail| u128::from_be_bytes(*tail))
}

/// Decodes the number of the commit at the end of a key under [`LOG`].
pub(super) fn tail_u32(bytes: &[u8]) -> Option<u32> {
    bytes.last_chunk::<4>().map(|tail| u32::from_be_bytes(*tail))
}

/// The value under [`HEAD`].
pub(super) fn head_value(head: Head) -> Vec<u8> {
    join(&[&head.position.0.to_be_bytes(), head.hash.as_bytes()])
}

/// Decodes a value from [`head_value`].
pub(super) fn read_head(value: &[u8]) -> Option<Head> {
    let (position, hash) = value.split_first_chunk::<8>()?;
    Some(Head { position: Position(u64::from_be_bytes(*position)), hash: Digest::from_bytes(hash.try_into().ok()?) })
}

/// The value under [`AUDIT`].
pub(super) fn link(hash: Digest, source: Source) -> Vec<u8> {
    join(&[hash.as_bytes(), &source.to_bytes()])
}

/// Decodes a value from [`link`].
pub(super) fn read_link(value: &[u8]) -> Option<(Digest, Source)> {
    let (hash, source) = value.split_first_chunk::<32>()?;
    Some((Digest::from_bytes(*hash), Source::from_bytes(source)?))
}

/// The record in a value, or the reference to its blob. `None` if values of this kind have none.
pub(super) fn record<'a>(key: &[u8], value: &'a [u8]) -> Option<&'a [u8]> {
    value.get(room(key)?..)
}

/// As [`record`], of a value without its stamp.
pub(super) fn unstamped_record<'a>(key: &[u8], value: &'a [u8]) -> Option<&'a [u8]> {
    value.get(room(key)?.checked_sub(STAMP)?..)
}

/// The number of bytes in front of the record of a value.
fn room(key: &[u8]) -> Option<usize> {
    match *key.first()? {
        HOST_FEED | STARTED | REVOKED | REMOVAL => Some(0),
        LOG | SUSPENSION | DELIVERY | STANDING | JOURNAL_ENTRY => Some(STAMP),
        // Behind the stamp is the size of the turn, or a count.
        ENDED | AUDIENCE | RUN_LOG => Some(STAMP + COUNT),
        _ => None,
    }
}

/// Splits a value into its stamp and the rest.
pub(super) fn stamped(value: &[u8]) -> Option<(Position, &[u8])> {
    let (stamp, rest) = value.split_first_chunk::<STAMP>()?;
    Some((Position(u64::from_be_bytes(*stamp)), rest))
}

/// The count and the record in a value under [`AUDIENCE`] or [`KEPT`], without its stamp.
pub(super) fn read_count(value: &[u8]) -> Option<(u64, &[u8])> {
    let (count, record) = value.split_first_chunk::<COUNT>()?;
    Some((u64::from_be_bytes(*count), record))
}

pub(super) fn named(index: u8, name: &[u8]) -> Vec<u8> {
    // Ids have at most 128 bytes. With a limit over 255 bytes, keys could collide silently.
    let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
    join(&[&[index, length], name])
}

fn join(parts: &[&[u8]]) -> Vec<u8> {
    // Most keys end in a position, which takes 8 more bytes.
    let mut key = Vec::with_capacity(parts.iter().map(|part| part.len()).sum::<usize>() + 8);
    for part in parts {
        key.extend_from_slice(part);
    }
    key
}

/// Describes the entry under a key, for error messages.
pub(super) fn in_words(key: &[u8]) -> String {
    let turn = || tail_u128(key).map(TurnId::from_bits).map(|id| format!(" of {id}")).unwrap_or_default();
    let suspension = || tail_u128(key).map(SuspensionId::from_bits).map(|id| format!(" of {id}")).unwrap_or_default();
    let position = || tail_u64(key).map(|position| format!(" at position {position}")).unwrap_or_default();
    match key.first() {
        Some(&LOG) => match read_pointer(&key[1..]) {
            Some((turn, number)) => format!("commit {number} of {turn}"),
            None => "a commit of an unknown turn".into(),
        },
        Some(&FEED) => format!("the entry of a conversation{}", position()),
        Some(&HOST_FEED) => format!("the plugin event{}", position()),
        Some(&(ENDS | ENDS_OF)) => format!("the end of a turn{}", position()),
        Some(&STARTED) => format!("the start of a host{}", position()),
        Some(&REVOKED) => format!("the end of a standing approval{}", position()),
        Some(&AUDIT) => format!("the audit entry{}", position()),
        Some(&OWNER) => "the owner of a conversation".into(),
        Some(&CALL) => "the entry of a call id".into(),
        Some(&(DUE | UNFINISHED)) => format!("the due time{}", turn()),
        Some(&(SUSPENSION | SELECTED | CLOSED | WAITING)) => format!("the row{}", suspension()),
        Some(&AUDIENCE) => "the count of an audience".into(),
        Some(&KEPT) => "the size of a principal's turns".into(),
        Some(&(DELIVERY | TO_DELIVER)) => "a delivery to a webhook".into(),
        Some(&RUN_LOG) => "the log of a call".into(),
        Some(&(JOURNAL | JOURNAL_ENTRY)) => "the journal of a call".into(),
        Some(&(STANDING | STANDING_STATE)) => {
            let id = tail_u128(key).map(StandingId::from_bits);
            id.map_or_else(|| "a standing approval".into(), |id| format!("the standing approval {id}"))
        }
        Some(&DENIED) => "a denial".into(),
        Some(&REMOVAL) => format!("the removal of turns{}", position()),
        Some(&ENDED) => format!("the end{}", turn()),
        // The key may go on after the turn.
        Some(&(REMOVED | REMOVED_BEFORE)) if key.len() > 17 => in_words(&key[..17]),
        Some(&(REMOVED | REMOVED_BEFORE)) => format!("the removal{}", turn()),
        Some(&BLOB) => "the entry of a large record".into(),
        _ => "an entry that no host writes".into(),
    }
}
