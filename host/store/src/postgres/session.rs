//! A connection to the server, with its prepared statements.

use deadpool_postgres::Object;
use dispatch::ports::StoreFault;
use futures::future::try_join_all;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, RowStream};

use super::fault::{database_fault, is_lost, is_overtaken};

/// Why a transaction failed.
#[derive(Debug, Clone)]
pub(super) enum Failure {
    /// The server refused a statement, so nothing of the transaction happened.
    Refused(StoreFault),
    /// Nothing of the transaction happened, because another host was faster. It can be repeated.
    Overtaken(StoreFault),
    /// No answer arrived.
    Lost(StoreFault),
}

impl Failure {
    pub(super) fn of(attempted: &'static str) -> impl FnOnce(Error) -> Self {
        move |error| {
            let failure = match () {
                () if is_lost(&error) => Self::Lost,
                () if is_overtaken(&error) => Self::Overtaken,
                () => Self::Refused,
            };
            failure(database_fault(attempted)(error))
        }
    }
}

impl From<Failure> for StoreFault {
    fn from((Failure::Refused(fault) | Failure::Overtaken(fault) | Failure::Lost(fault)): Failure) -> Self {
        fault
    }
}

/// Rows that no host writes: the transaction is given up.
impl From<StoreFault> for Failure {
    fn from(fault: StoreFault) -> Self {
        Self::Refused(fault)
    }
}

/// A parameter of a statement, such as the values of one column.
pub(super) type Column = Box<dyn ToSql + Sync + Send>;

/// The values of one column.
pub(super) fn column_of<T, V>(rows: &[T], value: impl Fn(&T) -> V) -> Column
where
    Vec<V>: ToSql + Sync + Send + 'static,
{
    Box::new(rows.iter().map(value).collect::<Vec<V>>())
}

/// The connection of the writer.
pub(super) struct Session(Object);

const ATTEMPTED: &str = "commit";

impl Session {
    pub(super) fn new(connection: Object) -> Self {
        Self(connection)
    }

    /// Prepares statements, so that later each takes one message, and several can be sent at once.
    pub(super) async fn prepare(&self, statements: impl IntoIterator<Item = &'static str>) -> Result<(), Failure> {
        let prepared = statements.into_iter().map(|statement| self.0.prepare_cached(statement));
        try_join_all(prepared).await.map(drop).map_err(Failure::of(ATTEMPTED))
    }

    pub(super) async fn query(&self, statement: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Failure> {
        let statement = self.0.prepare_cached(statement).await.map_err(Failure::of(ATTEMPTED))?;
        self.0.query(&statement, parameters).await.map_err(Failure::of(ATTEMPTED))
    }

    pub(super) async fn execute(&self, statement: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<u64, Failure> {
        let statement = self.0.prepare_cached(statement).await.map_err(Failure::of(ATTEMPTED))?;
        self.0.execute(&statement, parameters).await.map_err(Failure::of(ATTEMPTED))
    }

    /// Runs a statement without parameters or rows.
    pub(super) async fn run(&self, statement: &str) -> Result<(), Failure> {
        self.0.batch_execute(statement).await.map_err(Failure::of(ATTEMPTED))
    }

    /// Waits for an advisory lock, which the connection has from then on.
    pub(super) async fn lock(&self, key: i64) -> Result<(), Error> {
        self.0.query("SELECT pg_advisory_lock($1)", &[&key]).await.map(drop)
    }

    /// The rows of a statement as they come, so that any number of them takes little memory.
    pub(super) async fn stream(&self, statement: &str) -> Result<RowStream, Failure> {
        let statement = self.0.prepare_cached(statement).await.map_err(Failure::of(ATTEMPTED))?;
        let parameters = std::iter::empty::<&(dyn ToSql + Sync)>();
        self.0.query_raw(&statement, parameters).await.map_err(Failure::of(ATTEMPTED))
    }

    pub(super) fn into_connection(self) -> Object {
        self.0
    }

    /// Whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Closes the connection, so that the server ends its transaction and its locks.
    pub(super) fn close(self) {
        drop(Object::take(self.0));
    }
}
