//! Pages and counts of suspensions.

use std::fmt::Write as _;

use dispatch::ports::{Audiences, Filter, Order, Page, StoreFault, SuspensionRow};
use domain::{
    Digest, SuspensionId,
    suspension::{Audience, SuspensionKind, SuspensionState},
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::plan::encoded;
use super::reads::Reader;
use super::rows::{self, column, decode, limit, of_suspension, unsigned};
use crate::record::{Record, stored_state};

/// The largest number of rows that are read for one page of a filter that no index has as a whole.
const MAX_EXAMINED: usize = 1_000;

const SUSPENSION: &str = "SELECT id, record FROM suspensions WHERE id = $1";
const COUNTS: &str = "SELECT waiting, record FROM audiences WHERE ($1 = '' AND $2 = '') AND waiting > 0 LIMIT $3";
const SCOPED_COUNTS: &str = "SELECT audience_counts.waiting, audiences.record FROM audience_counts \
    JOIN audiences ON audiences.digest = audience_counts.audience \
    WHERE audience_counts.scope = $1 AND audience_counts.tool = $2 AND audience_counts.waiting > 0 LIMIT $3";

/// A statement that is made for a filter, with its parameters.
#[derive(Default)]
struct Statement {
    parameters: Vec<Box<dyn ToSql + Sync + Send>>,
}

impl Statement {
    /// Adds a parameter and returns its name.
    fn parameter(&mut self, value: impl ToSql + Sync + Send + 'static) -> String {
        self.parameters.push(Box::new(value));
        format!("${}", self.parameters.len())
    }

    fn parameters(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.parameters.iter().map(|parameter| &**parameter as _).collect()
    }
}

fn row(row: &Row) -> Result<SuspensionRow, StoreFault> {
    let id = id(row)?;
    decode(column(row, "record")?, SuspensionRow::read, || format!("the row of {id}"))
}

fn id(row: &Row) -> Result<SuspensionId, StoreFault> {
    Ok(SuspensionId::from_bits(column::<uuid::Uuid>(row, "id")?.as_u128()))
}

/// The direction of an order, and the comparison with the suspension before the page.
const fn direction(order: Order) -> (&'static str, &'static str) {
    match order {
        Order::OldestFirst => ("ASC", ">"),
        Order::NewestFirst => ("DESC", "<"),
    }
}

/// The conditions of a filter that belong to a suspension's turn and tool.
fn scope(filter: &Filter, statement: &mut Statement) -> String {
    let mut conditions = String::new();
    let columns = [
        ("conversation", filter.conversation.as_ref().map(|id| id.of_caller().to_string())),
        ("caller", filter.caller.as_ref().map(ToString::to_string)),
        ("tool", filter.tool.clone()),
    ];
    for (column, value) in columns {
        if let Some(value) = value {
            let _ = write!(conditions, " AND {column} = {}", statement.parameter(value));
        }
    }
    conditions
}

impl Reader {
    pub(super) async fn suspension(&self, id: SuspensionId) -> Result<Option<SuspensionRow>, StoreFault> {
        let Some(found) = self.first(SUSPENSION, &[&of_suspension(id)]).await? else { return Ok(None) };
        match row(&found) {
            Ok(row) => Ok(Some(row)),
            Err(fault) => self.noted(fault),
        }
    }

    /// Whether a filter is of a conversation that has another caller. All turns of a conversation have the same.
    async fn selects_nothing(&self, filter: &Filter) -> Result<bool, StoreFault> {
        let (Some(conversation), Some(caller)) = (&filter.conversation, &filter.caller) else { return Ok(false) };
        Ok(self.owner(conversation).await?.is_some_and(|owner| owner != *caller))
    }

    pub(super) async fn suspensions(
        &self,
        filter: &Filter,
        after: Option<SuspensionId>,
        suspensions: usize,
    ) -> Result<Page, StoreFault> {
        if self.selects_nothing(filter).await? {
            return Ok(Page::default());
        }
        let of_ends = filter.is_about_ends();
        if of_ends && filter.open == Some(true) {
            return Ok(Page::default());
        }
        let states: &[bool] = match filter.open {
            _ if of_ends => &[false],
            None => &[true, false],
            Some(true) => &[true],
            Some(false) => &[false],
        };
        // An index is read for each kind, so that suspensions of other kinds cost nothing.
        let mut statement = Statement::default();
        let examined = if of_ends { MAX_EXAMINED } else { suspensions.saturating_add(1) };
        let kinds = SuspensionKind::ALL.into_iter().filter(|kind| filter.has_kind(*kind));
        let kinds = statement.parameter(kinds.map(rows::kind).collect::<Vec<i16>>());
        let rows = statement.parameter(limit(examined));
        let (order, after) = after_in(filter.order, after, &mut statement);
        let source = list(filter, &mut statement);
        let lists = states.iter().map(|is_open| {
            let state = if *is_open { "is_open" } else { "NOT is_open" };
            format!(
                "SELECT listed.id, listed.record FROM unnest({kinds}::smallint[]) AS wanted (kind) CROSS JOIN LATERAL (\
                 SELECT suspensions.id, suspensions.record FROM {source} AND {state}{after} \
                 ORDER BY id {order} LIMIT {rows}) AS listed"
            )
        });
        let lists = lists.collect::<Vec<_>>().join(" UNION ALL ");
        let sql = format!("SELECT * FROM ({lists}) AS lists ORDER BY id {order} LIMIT {rows}");
        let found = self.query(&sql, &statement.parameters()).await?;
        self.page(&found, filter, suspensions, examined)
    }

    pub(super) async fn suspensions_of(
        &self,
        filter: &Filter,
        audiences: &[Audience],
        after: Option<SuspensionId>,
        suspensions: usize,
    ) -> Result<Page, StoreFault> {
        let filter = Filter { open: Some(true), ..filter.clone() };
        if self.selects_nothing(&filter).await? {
            return Ok(Page::default());
        }
        let wanted = audiences.iter().filter(|audience| filter.kind.is_none_or(|kind| kind == audience.kind));
        let wanted = wanted.map(|audience| Ok(Digest::of(encoded(audience)?).as_bytes().to_vec()));
        let wanted = wanted.collect::<Result<Vec<Vec<u8>>, StoreFault>>()?;
        let mut statement = Statement::default();
        let wanted = statement.parameter(wanted);
        let examined = suspensions.saturating_add(1);
        let rows = statement.parameter(limit(examined));
        let (order, compare) = direction(filter.order);
        let after = after.map_or_else(String::new, |after| {
            format!(" AND suspension {compare} {}", statement.parameter(of_suspension(after)))
        });
        let scope = scope(&filter, &mut statement);
        let sql = format!(
            "SELECT suspensions.id, suspensions.record FROM (SELECT listed.suspension FROM unnest({wanted}::bytea[]) \
             AS wanted (audience) CROSS JOIN LATERAL (SELECT suspension FROM waiting \
             WHERE waiting.audience = wanted.audience{scope}{after} ORDER BY suspension {order} LIMIT {rows}) AS listed \
             ORDER BY suspension {order} LIMIT {rows}) AS page JOIN suspensions ON suspensions.id = page.suspension \
             ORDER BY id {order}"
        );
        let found = self.query(&sql, &statement.parameters()).await?;
        self.page(&found, &filter, suspensions, examined)
    }

    /// The first rows that match. If `examined` rows were read, there may be more.
    fn page(&self, found: &[Row], filter: &Filter, suspensions: usize, examined: usize) -> Result<Page, StoreFault> {
        let mut page = Page::default();
        let mut last = None;
        for found in found {
            if page.rows.len() + page.unreadable.len() == suspensions {
                page.next = last;
                return Ok(page);
            }
            let id = id(found)?;
            match row(found) {
                Ok(row) => page.rows.extend(filter.matches(&row).then_some(row)),
                Err(fault) => {
                    self.set_aside.take(fault)?;
                    page.unreadable.push(id);
                }
            }
            last = Some(id);
        }
        page.next = last.filter(|_| found.len() >= examined);
        Ok(page)
    }

    pub(super) async fn audiences(&self, filter: &Filter) -> Result<Audiences, StoreFault> {
        let mut audiences = Audiences { counts: Vec::new(), complete: true };
        if self.selects_nothing(filter).await? {
            return Ok(audiences);
        }
        let scope = match (&filter.conversation, &filter.caller) {
            (Some(conversation), _) => format!("c:{}", conversation.of_caller()),
            (None, Some(caller)) => format!("p:{caller}"),
            (None, None) => String::new(),
        };
        let tool = filter.tool.as_deref().unwrap_or_default();
        let statement = if scope.is_empty() && tool.is_empty() { COUNTS } else { SCOPED_COUNTS };
        let found = self.query(statement, &[&scope, &tool, &limit(Audiences::MAX + 1)]).await?;
        audiences.complete = found.len() <= Audiences::MAX;
        for row in found.iter().take(Audiences::MAX) {
            let count = unsigned(column(row, "waiting")?);
            match decode(column(row, "record")?, Audience::read, || "the count of an audience".to_owned()) {
                Ok(audience) if filter.kind.is_none_or(|kind| kind == audience.kind) => {
                    audiences.counts.push((audience, count));
                }
                Ok(_) => {}
                Err(fault) => {
                    audiences.complete = false;
                    self.set_aside.take(fault)?;
                }
            }
        }
        Ok(audiences)
    }
}

/// The direction of an order, and the condition for the rows after a suspension.
fn after_in(order: Order, after: Option<SuspensionId>, statement: &mut Statement) -> (&'static str, String) {
    let (direction, compare) = direction(order);
    let after = after.map_or_else(String::new, |after| {
        format!(" AND suspensions.id {compare} {}", statement.parameter(of_suspension(after)))
    });
    (direction, after)
}

/// The tables and the first conditions of a list. A filter by an end reads the list of that end, and its rows are compared with the
/// filter.
fn list(filter: &Filter, statement: &mut Statement) -> String {
    if let Some(by) = &filter.ended_by {
        let by = statement.parameter(by.to_string());
        return format!(
            "suspensions_ended_by AS closers JOIN suspensions ON suspensions.id = closers.suspension \
             WHERE closers.principal = {by} AND closers.kind = wanted.kind"
        );
    }
    if let Some(ended) = &filter.ended {
        let state = SuspensionState::Ended(ended.clone());
        let ending = statement.parameter(Digest::of(stored_state(&state)).as_bytes().to_vec());
        return format!("suspensions WHERE ending = {ending} AND suspensions.kind = wanted.kind");
    }
    let scope = scope(filter, statement);
    format!("suspensions WHERE suspensions.kind = wanted.kind{scope}")
}
