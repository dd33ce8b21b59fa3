//! Reading the logs and the journals of calls.

use dispatch::ports::{CallRecords, JournalPage, RunLog, StoreFault};
use domain::{
    CallIndex, TurnId,
    journal::{Entry, JournalBounds},
};

use super::reads::Reader;
use super::rows::{column, damaged, decode, limit, number, of_turn, unsigned};
use crate::record::Record;

const LOGS_SIZE: &str = "SELECT sum(octet_length(record))::bigint AS bytes FROM run_logs WHERE turn = $1";
const JOURNALS_SIZE: &str = "SELECT coalesce(sum(octet_length(record)), 0)::bigint AS bytes FROM journals \
    LEFT JOIN journal_entries USING (turn, call) WHERE turn = $1 HAVING count(*) > 0";
const LOGS: &str = "SELECT record FROM run_logs WHERE turn = $1 AND call = $2 ORDER BY run";
// Reads no record behind the one that reaches the bound.
const JOURNAL: &str = "SELECT journals.length, page.number, page.record FROM journals LEFT JOIN LATERAL (\
    SELECT number, record, sum(octet_length(record)) OVER (ORDER BY number) - octet_length(record) AS before FROM (\
    SELECT number, record FROM journal_entries WHERE turn = $1 AND call = $2 AND number >= $3 ORDER BY number LIMIT $4\
    ) AS entries) AS page ON page.before <= $5 WHERE journals.turn = $1 AND journals.call = $2 ORDER BY page.number";

impl Reader {
    /// Leaves out logs that are damaged.
    pub(super) async fn call_log(&self, turn: TurnId, call: CallIndex) -> Result<Vec<RunLog>, StoreFault> {
        let found = self.query(LOGS, &[&of_turn(turn), &i32::from(call.0)]).await?;
        let what = || format!("a log of call {} of {turn}", call.0);
        self.intact(&found, |row| decode(column(row, "record")?, RunLog::read, what))
    }

    /// The size of these records of a turn's calls. `None` without any.
    pub(super) async fn size_of_calls(&self, turn: TurnId, records: CallRecords) -> Result<Option<u64>, StoreFault> {
        let statement = match records {
            CallRecords::Logs => LOGS_SIZE,
            CallRecords::Journals => JOURNALS_SIZE,
        };
        let found = self.query(statement, &[&of_turn(turn)]).await?;
        let Some(row) = found.first() else { return Ok(None) };
        Ok(column::<Option<i64>>(row, "bytes")?.map(unsigned))
    }

    /// Fails if an entry is damaged or missing, because a run without it would repeat an effect.
    pub(super) async fn journal_page(
        &self,
        turn: TurnId,
        call: CallIndex,
        from: u32,
        max: JournalBounds,
    ) -> Result<JournalPage, StoreFault> {
        let what = || format!("the journal of call {} of {turn}", call.0);
        let (of_turn, of_call) = (of_turn(turn), i32::from(call.0));
        let (from_number, entries, bytes) = (i64::from(from), limit(max.entries), limit(max.bytes));
        let found = self.query(JOURNAL, &[&of_turn, &of_call, &from_number, &entries, &bytes]).await?;
        let Some(first) = found.first() else { return Ok(JournalPage::default()) };
        let mut page = JournalPage { entries: Vec::new(), length: number(first, "length")? };
        let mut bytes = 0_usize;
        for (row, expected) in found.iter().zip(from..) {
            let Some(record) = column::<Option<&[u8]>>(row, "record")? else { break };
            let entry = decode(record, Entry::read, what)?;
            if entry.number != expected || number(row, "number")? != expected {
                return Err(damaged(what()));
            }
            bytes = bytes.saturating_add(entry.size());
            if bytes > max.bytes && !page.entries.is_empty() {
                return Ok(page);
            }
            page.entries.push(entry);
        }
        let is_missing = page.entries.is_empty() && from < page.length && max.entries > 0;
        if is_missing { Err(damaged(what())) } else { Ok(page) }
    }
}
